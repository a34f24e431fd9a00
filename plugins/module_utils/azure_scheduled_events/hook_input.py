# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""The input of a hook: the variables EVENT_* and HOOK_SECONDS, the same as JSON, and the seconds that it has.

Each frontend composes the input here. Variables are printable, whatever text IMDS sends.
"""

from __future__ import annotations

import json
import sys
from math import floor
from typing import Any, Mapping, NamedTuple

from .printable import escape_surrogates, printable

# bytes of a variable; the kernel allows 128 KiB, Windows 32767 characters together with the name
MAX_VALUE = 8 * 1024
MAX_LIST = (31 if sys.platform == "win32" else 32) * 1024

# seconds between the end of a preparation and NotBefore, and the part of the notice that they are at most
MARGIN = 5.0
_MARGIN_DIVISOR = 4
# seconds for a preparation when NotBefore has passed and the event has not started
LATE_BUDGET = 30.0


def margin_within(notice: float, margin: float = MARGIN) -> float:
    """Return how many seconds before NotBefore a preparation has to end, if its whole notice has these seconds."""
    return min(margin, max(0.0, notice) / _MARGIN_DIVISOR)


def preparation_seconds(seconds_left: float, notice: float, margin: float = MARGIN) -> float:
    """Return the seconds that are left for a preparation; 0 or less if it is too late for one.

    ``seconds_left`` counts to NotBefore; it is not positive after that.
    """
    return seconds_left - margin_within(notice, margin) if seconds_left > 0 else LATE_BUDGET


def step_seconds(timeout: float, seconds_left: float | None) -> float:
    """Return the seconds that a step may take: its timeout, or the whole seconds that are left for its preparation.

    ``seconds_left`` is as for `preparation_seconds`; None if only the timeout limits the step. A step with a longer
    timeout has at least one second.
    """
    if seconds_left is None:
        return timeout
    return min(timeout, max(1.0, floor(preparation_seconds(seconds_left, seconds_left))))


class HookInput(NamedTuple):
    """The values for one run of a hook.

    Attributes:
        event: in the form of ``ScheduledEvent.as_dict``; members that are unknown may be missing.
        stage: such as "prepare".
        resource_name: name of this VM, or "".
        outcome: of the event; "" before its end.
        first_seen: when the event was first observed, in ISO 8601; "" if that is unknown.
        seconds_left: seconds until NotBefore; None if the event is over, or there is none.
        hook_seconds: seconds that the hook may take; None without a limit.
    """

    event: Mapping[str, Any]
    stage: str
    resource_name: str = ""
    outcome: str = ""
    first_seen: str = ""
    seconds_left: float | None = None
    hook_seconds: float | None = None

    def variables(self) -> dict[str, str]:
        """Return the environment variables; unknown values are empty."""
        texts = ("status", "source", "resource_type", "description", "not_before")
        values = {
            "EVENT_ID": self.event.get("event_id"),
            "EVENT_TYPE": self.event.get("event_type"),
            **{f"EVENT_{name.upper()}": self.event.get(name) for name in texts},
            "EVENT_SECONDS_LEFT": None if self.seconds_left is None else int(self.seconds_left),
            "EVENT_DURATION": self.event.get("duration_seconds"),
            "EVENT_STAGE": self.stage,
            "EVENT_OUTCOME": self.outcome,
            "EVENT_RESOURCE": self.resource_name,
            "EVENT_FIRST_SEEN": self.first_seen,
            "HOOK_SECONDS": _whole(self.hook_seconds),
        }
        names = " ".join(_without_spaces(str(name)) for name in self.event.get("resources") or ())
        return {
            **{
                name: _truncated("" if value is None else printable(str(value)), MAX_VALUE)
                for name, value in values.items()
            },
            "EVENT_RESOURCES": _truncated(names, MAX_LIST),
        }

    def as_json(self, **more: Any) -> bytes:
        """Return the values, and further members, as one JSON object in ASCII, for stdin."""
        members = {
            **self.event,
            "stage": self.stage,
            "outcome": self.outcome,
            "resource_name": escape_surrogates(self.resource_name),
            "seconds_left": None if self.seconds_left is None else int(self.seconds_left),
            "first_seen": self.first_seen,
            "hook_seconds": _whole(self.hook_seconds),
            **more,
        }
        return json.dumps(members).encode("ascii") + b"\n"


def _whole(seconds: float | None) -> float | None:
    """Return whole seconds, except less than one."""
    return seconds if seconds is None or seconds < 1 else int(seconds)


def _without_spaces(name: str) -> str:
    """Return a resource name without white space, which separates names in a list; "?" for an empty name."""
    return "".join("?" if character.isspace() else character for character in printable(name)) or "?"


def _truncated(text: str, most: int) -> str:
    """Return at most ``most`` bytes of a text; "..." replaces the end that was cut."""
    data = text.encode("utf-8")
    return text if len(data) <= most else data[: most - 3].decode("utf-8", "ignore") + "..."
