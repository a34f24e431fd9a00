# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""A run as the control API describes it: answers of /state, /log and /requests, as typed values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any, NamedTuple


class NotARun(ValueError):
    """The answers are not those of a simulator."""


class Event(NamedTuple):
    """An event that appeared. Moments are Unix times in seconds; None: not (yet), or unknown."""

    name: str
    id: str
    group: str
    type: str
    source: str
    description: str
    vms: tuple[str, ...]
    appeared: float
    not_before: float | None
    started: float | None
    ended: float | None
    cancelled: bool


class Fault(NamedTuple):
    """A fault in force from ``begins`` to ``ends``, at most until now; no ``vms``: all VMs."""

    number: int
    kind: str
    vms: tuple[str, ...]
    begins: float
    ends: float


class Line(NamedTuple):
    """A line of the log."""

    moment: float
    what: str
    fields: Mapping[str, Any]


class Answer(NamedTuple):
    """An answer to a request for IMDS; ``status`` 0: the client got no complete answer."""

    moment: float
    vm: str
    method: str
    route: str
    status: int
    fault: str


class Run(NamedTuple):
    """A run until ``now``. ``groups``: VM name to group; ``counts``: VM and status to number of answers.

    ``dropped_lines`` and ``dropped_answers`` are older entries that the simulator no longer has.
    """

    title: str
    now: float
    speed: float
    groups: Mapping[str, str]
    events: tuple[Event, ...]
    faults: tuple[Fault, ...]
    lines: tuple[Line, ...]
    answers: tuple[Answer, ...]
    counts: Mapping[tuple[str, int], int]
    dropped_lines: int
    dropped_answers: int


def run_from(state: Any, log: Any, requests: Any) -> Run:
    """Return the run that the answers of /state, /log and /requests describe.

    Raises:
        NotARun: an answer has another form.
    """
    try:
        now, speed = _clock(state["unix"]), float(state["speed"])
        if not 0 < speed < math.inf:
            raise ValueError(f"speed {speed}")
        lines = tuple(Line(_moment(each["time"]), str(each["what"]), each) for each in log["lines"])
        cleared = [(line.moment, each) for line in lines for each in line.fields.get("faults") or ()]
        faults = [_fault(each, now) for each in state["faults"]] + [_fault(each, end) for end, each in cleared]
        counts: dict[tuple[str, int], int] = {}
        for each in requests["counts"]:
            key = (str(each["vm"]), int(each["status"]))
            counts[key] = counts.get(key, 0) + int(each["count"])
        return Run(
            str(state["title"] or ""),
            now,
            speed,
            {str(name): str(vm["group"]) for name, vm in state["vms"].items()},
            tuple(_event(each, now) for each in state["events"] if _has_appeared(each, now)),
            tuple(each for each in faults if each.begins <= each.ends),
            lines,
            tuple(
                Answer(
                    _clock(each["moment"]),
                    str(each["vm"]),
                    str(each["method"]),
                    str(each["route"]),
                    int(each["status"]),
                    str(each["fault"]),
                )
                for each in requests["requests"]
            ),
            counts,
            int(log["dropped"]),
            int(requests["dropped"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, OSError) as error:
        raise NotARun(f"{type(error).__name__}: {error}") from None


def _event(data: Mapping[str, Any], now: float) -> Event:
    appeared = _moment(data["appears_at"])
    return Event(
        str(data["name"]),
        str(data["id"]),
        str(data["group"]),
        str(data["type"]),
        str(data["source"]),
        str(data["description"]),
        tuple(map(str, data["resources"])),
        appeared,
        _optional(data["not_before"]),
        _past(data["started_at"], now),
        _past(data["gone_at"], now),
        bool(data["cancelled"]),
    )


def _has_appeared(data: Mapping[str, Any], now: float) -> bool:
    appears, gone = _optional(data["appears_at"]), _optional(data["gone_at"])
    return appears is not None and appears <= now and (gone is None or gone >= appears) and data["status"] != "Planned"


def _fault(data: Mapping[str, Any], until: float) -> Fault:
    """Return a fault, whose window ends at ``until`` at the latest: now, or when it was cleared."""
    ends = _optional(data["to"])
    return Fault(
        int(data["number"]),
        str(data["kind"]),
        tuple(map(str, data["vms"])),
        _moment(data["from"]),
        until if ends is None or ends > until else ends,
    )


def _clock(value: Any) -> float:
    """Return a moment of the simulator's clock that has a date."""
    return datetime.fromtimestamp(float(value), timezone.utc).timestamp()


def _moment(text: Any) -> float:
    return datetime.fromisoformat(str(text).replace("Z", "+00:00")).timestamp()


def _optional(text: Any) -> float | None:
    return None if text is None else _moment(text)


def _past(text: Any, now: float) -> float | None:
    moment = _optional(text)
    return None if moment is None or moment > now else moment
