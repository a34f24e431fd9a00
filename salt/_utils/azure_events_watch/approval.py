# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""What a function call or state wants approved, and on which conditions."""

from __future__ import annotations

import os
import stat
from typing import Any

from azure_scheduled_events.approval_plan import ApprovalCriteria
from azure_scheduled_events.policy import Policy, PolicyError
from azure_scheduled_events.policy_file import parse_policy
from azure_scheduled_events.selection import Selection

_LONGEST_FILE = 1024 * 1024


def read_grounds(
    selection: Selection,
    policy: Any,
    policy_file: Any,
    prepared: Any,
    gates: Any,
    release_others: Any,
    show_content: bool,
) -> ApprovalCriteria:
    """What a caller's arguments describe; this VM's name is not among it. Raises ValueError, PolicyError among them.

    show_content: whether errors may quote the policy file.
    """
    chosen = (selection.event_ids, selection.types, selection.statuses, selection.sources, policy, policy_file)
    if all(word is None for word in chosen):
        raise ValueError(
            "one of event_ids, types, statuses, sources, policy and policy_file is needed: nothing approves by default"
        )
    if policy is not None and policy_file is not None:
        raise ValueError("policy and policy_file exclude each other")
    if policy_file is not None:
        policy = _policy_of(str(policy_file), show_content)
    return ApprovalCriteria.parse(selection, policy, prepared, gates, release_others)


def _policy_of(path: str, show_content: bool) -> Policy:
    text = _read_text(path, "policy_file")
    try:
        return parse_policy(text, path)
    except PolicyError as error:
        if show_content:
            raise
        raise ValueError(f"policy_file: {path} is not a policy; a local salt-call on the minion says why") from error


def _read_text(path: str, kind: str) -> str:
    """The text of a regular file of at most 1 MB. Raises ValueError, which holds nothing of its content."""
    try:
        # a named pipe is opened without waiting for its writer, and refused
        fd = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0))
        with open(fd, "rb") as file:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise ValueError(f"{kind}: {path} is not a regular file")
            content = file.read(_LONGEST_FILE + 1)
    except OSError as error:
        raise ValueError(f"{kind}: {path} cannot be read: {error.strerror}") from None
    if len(content) > _LONGEST_FILE:
        raise ValueError(f"{kind}: {path} is longer than 1 MB")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"{kind}: {path} is not UTF-8") from None
