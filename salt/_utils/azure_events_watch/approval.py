# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""What a function call or state wants approved, and on which conditions."""

from __future__ import annotations

from typing import Any, Optional

from azure_scheduled_events.approving import Grounds
from azure_scheduled_events.policy import Policy
from azure_scheduled_events.policy_file import load_policy
from azure_scheduled_events.predicates import PREPARED, one_of
from azure_scheduled_events.selection import Selection


def read_grounds(selection: Selection, policy: Any, policy_file: Any, prepared: Any, gates: Any, release_others: Any) -> Grounds:
    """What a caller's arguments describe; this VM's name is not among it. Raises ValueError, PolicyError among them."""
    chosen = (selection.event_ids, selection.types, selection.statuses, selection.sources, policy, policy_file)
    if all(word is None for word in chosen):
        raise ValueError("one of event_ids, types, statuses, sources, policy and policy_file is needed: nothing approves by default")
    if policy is not None and policy_file is not None:
        raise ValueError("policy and policy_file exclude each other")
    if not isinstance(release_others, bool):
        raise ValueError("release_others has to be true or false, not %r" % (release_others,))
    checked = dict(gates or {})
    for name, value in checked.items():
        if not isinstance(value, bool):
            raise ValueError("gates: %s has to be true or false, not %r" % (name, value))
    rules: Optional[Policy] = None
    if policy_file is not None:
        rules = load_policy(str(policy_file))
    elif policy is not None:
        rules = Policy.preset(policy) if isinstance(policy, str) else Policy.from_mapping(policy)
    return Grounds(selection, None, release_others, rules, one_of(prepared, PREPARED, "word for prepared"), checked)
