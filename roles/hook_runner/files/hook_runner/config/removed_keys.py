# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The keys that config.yml no longer has, each with what an operator does instead."""

from __future__ import annotations

REMOVED_KEYS: dict[str, str] = {
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
