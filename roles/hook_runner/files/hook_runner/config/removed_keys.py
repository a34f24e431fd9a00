# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The keys that config.yml no longer has, each with what an operator does instead."""

from __future__ import annotations

_REMEDIES = {
    "facts_file": "set hook_runner_facts of the role, which installs an executable fact",
    "facts_stale_after": "remove it, the executable fact of the role is never stale",
    "hook_timeout": "set timeout of single hooks below hooks, without it a hook has 10 minutes",
    "journal": "set state_directory, a folder for the records, if the default does not suit you",
    "log_format": "remove it, journalctl --output=json prints JSON",
    "minimum_budget": "remove it, a prepare hook has 30 s when NotBefore has passed",
    "output_tail": "remove it, the last 4096 bytes of each hook's output are kept",
    "policy_file": "write the policy itself as policy",
    "reappear_within": "remove it, an event that comes back after it was gone is another occurrence",
    **dict.fromkeys(
        (
            "push_url",
            "push_token_file",
            "push_hmac_file",
            "push_hmac_algorithm",
            "push_hmac_header",
            "push_hmac_format",
            "push_ca_file",
            "push_timeout",
            "push_spool_changes",
            "push_spool_age",
        ),
        "use the ready hook notify",
    ),
}
REMOVED_KEYS = {key: f"no longer a key; {remedy}" for key, remedy in _REMEDIES.items()}
