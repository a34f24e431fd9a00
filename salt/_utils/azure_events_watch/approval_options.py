# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""Parses the arguments of ``azure_events.approve``: which events to approve, and on which conditions."""

from __future__ import annotations

import os
import stat
from typing import Any, Mapping

from azure_scheduled_events.approval_plan import ApprovalCriteria
from azure_scheduled_events.policy import Policy
from azure_scheduled_events.selection import Selection

# more than a policy may have
_MAX_FILE_BYTES = 1024 * 1024


def parse_criteria(
    selection: Selection,
    policy: Any,
    policy_file: Any,
    prepared: Any,
    gates: Any,
    release_others: Any,
    show_content: bool,
) -> ApprovalCriteria:
    """Return the criteria that a caller's arguments describe, without this VM's name.

    Args:
        selection: the parsed selection arguments.
        policy: name of a preset, or a mapping with rules.
        policy_file: path of a YAML file with a policy.
        prepared: state of the preparation, for the policy.
        gates: results of the caller's own checks by name, for the policy.
        release_others: whether to approve events that affect other VMs too.
        show_content: whether errors may quote the policy file.

    Raises:
        ValueError: an argument is invalid, the arguments exclude each other, or none selects an event.
    """
    chosen = (selection.event_ids, selection.types, selection.statuses, selection.sources, policy, policy_file)
    if all(value is None for value in chosen):
        raise ValueError(
            "one of event_ids, types, statuses, sources, policy and policy_file is needed: nothing approves by default"
        )
    if policy is not None and policy_file is not None:
        raise ValueError("policy and policy_file exclude each other")
    if gates is not None and not isinstance(gates, Mapping):
        raise ValueError(f"gates: expected names with true or false, not {gates!r}")
    if policy_file is not None:
        policy = _load_policy(str(policy_file), show_content)
    return ApprovalCriteria.parse(selection, policy, prepared, gates, release_others)


def _load_policy(path: str, show_content: bool) -> Policy:
    text = _read_text(path, "policy_file")
    try:
        return Policy.from_yaml(text, path)
    except ValueError as error:
        if show_content:
            raise
        raise ValueError(f"policy_file: {path} is not a policy; run salt-call on the minion for the error") from error


def _read_text(path: str, kind: str) -> str:
    """Return the first 1 MB of a regular file as text; the ValueError for others quotes none of it."""
    try:
        # O_NONBLOCK: opening a named pipe must not wait for its writer; the pipe is refused below
        fd = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0))
        with open(fd, "rb") as file:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise ValueError(f"{kind}: {path} is not a regular file")
            content = file.read(_MAX_FILE_BYTES)
    except OSError as error:
        raise ValueError(f"{kind}: {path} cannot be read: {error.strerror}") from None
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"{kind}: {path} is not UTF-8") from None
