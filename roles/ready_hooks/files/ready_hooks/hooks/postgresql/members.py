# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""The members of a cluster of Patroni, from the answer of patronictl."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

_LEADERS = ("leader", "standby leader", "master")
_SYNCHRONOUS = ("sync standby", "quorum standby")
_HEALTHY = ("running", "streaming")


class Member(NamedTuple):
    """One member.

    Attributes:
        name: in Patroni's configuration.
        role: such as leader, replica or sync standby.
        state: such as running, streaming or stopped.
        lag: bytes; infinite if unknown, and 0 for the leader.
        barred: whether its tags forbid that it becomes the leader.
    """

    name: str
    role: str
    state: str
    lag: float
    barred: bool

    @property
    def is_leader(self) -> bool:
        """Whether it is the leader."""
        return self.role in _LEADERS

    @property
    def is_healthy(self) -> bool:
        """Whether its server runs, as a leader or with replication."""
        return self.state in _HEALTHY


def members(answer: str) -> tuple[Member, ...]:
    """Return the members that `patronictl list -f json` printed. Raises ValueError."""
    rows = json.loads(answer)
    if not isinstance(rows, list) or not all(isinstance(row, dict) and "Member" in row for row in rows):
        raise ValueError("expected a list of members")
    return tuple(_member(row) for row in rows)


def _member(row: dict[str, Any]) -> Member:
    role = str(row.get("Role", "")).lower()
    lag = row.get("Lag in MB", row.get("Lag", ""))
    known = isinstance(lag, (int, float)) or str(lag).isdigit()
    tags = row.get("Tags")
    return Member(
        name=str(row["Member"]),
        role=role,
        state=str(row.get("State", "")).lower(),
        lag=0.0 if role in _LEADERS else float(lag) * 2**20 if known else math.inf,
        barred=isinstance(tags, dict) and str(tags.get("nofailover", "")).lower() in ("true", "1"),
    )


def candidate(found: Sequence[Member], own: str, wanted: str | None, most_lag: int) -> tuple[str | None, str]:
    """Return the member that can take over from this one, or None, and why the others cannot.

    If `wanted` is given, only this member is acceptable. `most_lag` is in bytes.
    """
    others = [member for member in found if member.name != own and wanted in (None, member.name)]
    reasons, suitable = [], []
    has_synchronous = any(member.role in _SYNCHRONOUS for member in found)
    for member in others:
        reason = _obstacle(member, most_lag)
        if reason is None and has_synchronous and member.role not in _SYNCHRONOUS:
            reason = "it is not the synchronous standby"
        if reason is None:
            suitable.append(member)
        else:
            reasons.append(f"{member.name}: {reason}")
    if suitable:
        return min(suitable, key=lambda member: member.lag).name, ""
    return None, ", ".join(reasons) or f"there is no other member{f' {wanted}' if wanted else ''}"


def _obstacle(member: Member, most_lag: int) -> str | None:
    if not member.is_healthy:
        return f"its state is {member.state}"
    if member.lag > most_lag:
        return f"it lags too far ({member.lag:.0f} bytes)"
    if member.barred:
        return "its tag nofailover is set"
    return None


def own_name(configuration: str) -> str | None:
    """Return the name in Patroni's configuration, which is YAML, or None."""
    match = re.search(r"^name:[ \t]*([\"']?)([^\"'#\n]+)\1", configuration, re.MULTILINE)
    return match[2].strip() if match else None
