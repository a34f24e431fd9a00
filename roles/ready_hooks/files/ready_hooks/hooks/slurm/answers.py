# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""The answers of scontrol and squeue. Slurm 22.05 has no JSON without an extra package."""

from __future__ import annotations

import re
import time
from typing import NamedTuple

_DRAINED = ("DRAIN", "DRAINED", "DRAINING")
_AWAY = ("NOT_RESPONDING", "POWERED_DOWN", "POWERING_DOWN", "REBOOT_ISSUED")
_STARTED_FORMAT = "%Y-%m-%dT%H:%M:%S"
# scontrol adds the user and the time to a reason
_REASON = re.compile(r"^\s*Reason=(.*?)(?: \[[^\[\]]*@[^\[\]]*\])?$", re.MULTILINE)


class Node(NamedTuple):
    """A node.

    Attributes:
        name: in Slurm.
        host: name of its host.
        states: the words of its state, such as IDLE and DRAIN.
        reason: as it was set, "" without one.
        started: when slurmd was started that has registered last; None if unknown.
    """

    name: str
    host: str
    states: tuple[str, ...]
    reason: str
    started: float | None

    @property
    def is_drained(self) -> bool:
        """Whether Slurm starts no new job on it."""
        return any(word in self.states for word in _DRAINED)

    @property
    def is_down(self) -> bool:
        """Whether Slurm uses it for no job at all."""
        return "DOWN" in self.states or "FAIL" in self.states

    @property
    def is_away(self) -> bool:
        """Whether Slurm does not reach its slurmd."""
        return any(word in self.states for word in _AWAY)


def parse_nodes(text: str) -> list[Node]:
    """Return the nodes in the output of `scontrol show node`, which is empty for an error."""
    return [_node(part) for part in re.split(r"^(?=NodeName=)", text, flags=re.MULTILINE) if part[:9] == "NodeName="]


def parse_jobs(text: str) -> list[tuple[str, str]]:
    """Return numbers and states in the output of `squeue --format=%A|%T`. Raises ValueError."""
    jobs = []
    for line in text.splitlines():
        number, separator, state = line.strip().partition("|")
        if not separator or not number.isdecimal():
            raise ValueError(f"not a number and a state: {line!r}")
        jobs.append((number, state))
    return jobs


def parse_may_requeue(text: str) -> bool:
    """Return whether the output of `scontrol show job` is that of a batch job that may be requeued."""
    flags = re.search(r"^\s+Requeue=(\d+) .*\bBatchFlag=(\d+)", text, re.MULTILINE)
    return flags is not None and flags[1] != "0" and flags[2] != "0"


def parse_slurmd_started(text: str) -> float | None:
    """Return when the slurmd was started that `scontrol show slurmd` reports on; None if unknown."""
    found = re.search(r"^Boot time\s*=\s*(\S+)", text, re.MULTILINE)
    return _seconds(found[1]) if found else None


def _node(text: str) -> Node:
    reason = _REASON.search(text)
    started = re.search(r"\bSlurmdStartTime=(\S+)", text)
    state = re.search(r"^\s*State=(\S+)", text, re.MULTILINE)
    host = re.search(r"\bNodeHostName=(\S+)", text)
    words = state[1] if state else ""
    states = [re.sub(r"[^A-Z_]", "", word) for word in words.split("+")]
    # a star after the state is the short form of NOT_RESPONDING
    states += ["NOT_RESPONDING"] if "*" in words else []
    return Node(
        text[len("NodeName=") :].split(maxsplit=1)[0],
        host[1] if host else "",
        tuple(states),
        reason[1] if reason else "",
        _seconds(started[1]) if started else None,
    )


def _seconds(text: str) -> float | None:
    try:
        return time.mktime(time.strptime(text, _STARTED_FORMAT))
    except (ValueError, OverflowError):
        return None
