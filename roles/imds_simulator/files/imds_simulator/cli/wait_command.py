# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The verb ``wait``: waits until an event of a running simulator is approved, has started, or is gone."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from ..printable_text import printable
from ..times import duration_text, parse_duration
from ..value_types import one_of
from .control_client import TIMEOUT, Call, ControlError, send
from .control_commands import EVENT
from .options import control_options
from .output import fail
from .parsing import Command, option, parse, typed

# real seconds between two questions
_INTERVAL = 0.25
# real seconds that an answer may always take, also when less is left
_LEAST_TIMEOUT = 1.0
_PERFECT = {"approved": "had been approved", "started": "had started", "gone": "had gone"}
_UNTIL = one_of(*_PERFECT)
_COMMAND = Command(
    "wait",
    """
Wait until an event is approved, has started, or is gone, and print one line about it. The event may appear in the
meantime.

\b
Exit codes:
  0  the event is approved, has started, or is gone, also if it was so before
  1  it can no longer become so, or the simulator refused, cannot be reached, or has ended
  2  the arguments are invalid, or several EventIds begin with EVENT
  3  the time is over
""",
    [
        *control_options(),
        EVENT,
        option("until", _UNTIL.metavar, "the state to wait for (default started)", typed(_UNTIL), default="started"),
        option("timeout", "DURATION", "real time to wait (default 30s)", parse_duration, default=30.0),
    ],
)


def main(arguments: Sequence[str]) -> int:
    """Run the verb with ``arguments`` and return 0 when the event has reached the state."""
    options = parse(_COMMAND, arguments)
    call = Call("GET", f"/events/{quote(options.event, safe='')}")
    began = time.monotonic()
    waited, is_first = 0.0, True
    while True:
        try:
            timeout = min(TIMEOUT, max(_LEAST_TIMEOUT, options.timeout - waited))
            event = send(options, call, timeout, again=not is_first)
        except ControlError as error:
            if error.status != 404:
                fail(error.error, 2 if error.status == 400 else 1)
            event, problem = None, f"event {options.event}: it has not come"
        waited = time.monotonic() - began
        if event:
            if reached := _reached(options.until, event):
                text = f"{_PERFECT[options.until]} at {reached}"
                if not is_first:
                    text = f"{options.until} after {waited:.1f} s"
                print(printable(f"{event['name']} {text}"))
                return 0
            state = "cancelled" if event["cancelled"] else event["status"]
            problem = f"event {event['name']}: it is {state} and not {options.until}"
            if _reached("gone", event) or (options.until == "approved" and _reached("started", event)):
                fail(problem, 1)
        if waited >= options.timeout:
            fail(f"{problem} after {duration_text(options.timeout)}", 3)
        is_first = False
        time.sleep(min(_INTERVAL, options.timeout - waited))


def _reached(state: str, event: Mapping[str, Any]) -> str | None:
    """Return the time at which ``event``, an answer of the control API, came to ``state``; None: it did not."""
    if state == "approved":
        return min(event["approvals"].values(), default=None)
    moment: str | None = event[f"{state}_at"]
    return moment
