# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Positions in the write-ahead log, and what pg_controldata and a history file say about them."""

from __future__ import annotations

import re
from typing import NamedTuple

_LSN = re.compile(r"([0-9A-Fa-f]{1,8})/([0-9A-Fa-f]{1,8})")
_UNITS = {"": 1, "B": 1, "kB": 2**10, "KB": 2**10, "KiB": 2**10, "MB": 2**20, "MiB": 2**20, "GB": 2**30, "GiB": 2**30}

CLEAN = "shut down"
_CRASHED_PRIMARY = "in production"


def lsn(text: str) -> int:
    """Return a position such as 16/B374D848 as a number. Raises ValueError."""
    match = _LSN.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"expected a position such as 16/B374D848, not {text!r}")
    return int(match[1], 16) << 32 | int(match[2], 16)


def size(value: object) -> int:
    """Return bytes: a number, or a text such as 512kB, 16MiB or 1GB. Raises ValueError."""
    match = re.fullmatch(r"(\d{1,15})\s*([A-Za-z]*)", str(value))
    if match is None or isinstance(value, bool) or match[2] not in _UNITS:
        raise ValueError(f"expected a number of bytes such as 16MiB, not {value!r}")
    return int(match[1]) * _UNITS[match[2]]


class ControlData(NamedTuple):
    """The state of a data directory.

    Attributes:
        state: such as "shut down", "in production" or "shut down in recovery".
        checkpoint: begin of the record of the latest checkpoint; after a clean stop of a primary it
            is the last record.
        received: end of the records that a standby had replayed at least; 0 on a primary.
        timeline: of this checkpoint.
        system: identifier that all nodes of one replication have.
        can_rewind: whether pg_rewind works on this directory.
    """

    state: str
    checkpoint: int
    received: int
    timeline: int
    system: str
    can_rewind: bool


def control_data(output: str) -> ControlData:
    """Return what pg_controldata printed in the locale C. Raises ValueError."""
    lines = (line.partition(":") for line in output.splitlines())
    found = {name.strip(): value.strip() for name, _colon, value in lines}
    try:
        return ControlData(
            state=found["Database cluster state"],
            checkpoint=lsn(found["Latest checkpoint location"]),
            received=lsn(found["Minimum recovery ending location"]),
            timeline=int(found["Latest checkpoint's TimeLineID"]),
            system=found["Database system identifier"],
            can_rewind=found["wal_log_hints setting"] == "on" or found["Data page checksum version"] != "0",
        )
    except KeyError as error:
        raise ValueError(f"pg_controldata printed no line {error}") from None


def left_timeline_at(history: str, timeline: int) -> int | None:
    """Return where a server left a timeline for the next one, or None if it has never been on it.

    `history` is the content of the history file of the server's present timeline.
    """
    for line in history.splitlines():
        words = line.split()
        if len(words) >= 2 and words[0] == str(timeline):
            return lsn(words[1])
    return None


def has_diverged(own: ControlData, timeline: int, history: str) -> bool:
    """Return True if a stopped server has records that a primary does not have.

    `own` is of the stopped server; `timeline` is that of the primary, and `history` that of this timeline.
    """
    if own.timeline == timeline:
        return False
    left = left_timeline_at(history, own.timeline)
    if left is None:
        return True
    # a primary that crashed can have records after its checkpoint
    return left <= own.checkpoint or left < own.received or own.state == _CRASHED_PRIMARY
