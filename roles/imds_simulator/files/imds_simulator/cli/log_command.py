# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The verb ``log``: prints the log of a running simulator as text, with the requests of VMs."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

from ..printable_text import printable
from ..server.activity_log import KINDS, line_text
from ..times import iso
from ..value_types import one_of
from .control_client import get_state
from .options import control_options
from .output import print_problem
from .parsing import Command, flag, option, parse, typed

# real seconds between two questions
_INTERVAL = 0.25
_COMMAND = Command(
    "log",
    """
Show the log of events, approvals, faults, control requests and requests of VMs: time, VM, what, detail. Equal answers
in a row to one VM are one line.
""",
    [
        *control_options(),
        option(
            "what",
            "WHAT",
            "only lines of this kind, such as approval or started; no requests of VMs",
            typed(one_of(*KINDS)),
        ),
        flag("follow", "print further lines as they come, until Ctrl-C"),
    ],
)


def main(arguments: Sequence[str]) -> int:
    """Run the verb with ``arguments`` and return 0, also after Ctrl-C."""
    options = parse(_COMMAND, arguments)
    line, request, of_run = 0, 0, None
    try:
        while True:
            run = get_state(options, f"?after_line={line}&after_request={request}", again=of_run is not None)
            if of_run not in (None, run["run"]):
                print_problem("the simulator was started again; its log begins again")
                line, request, of_run = 0, 0, None
                continue
            lines = run["last_line"] - line - len(run["lines"])
            requests = run["last_request"] - request - sum(each["count"] for each in run["answers"])
            if lines or requests:
                print_problem(f"older lines that are left out: {lines}; older requests: {requests}")
            for text in _texts(run, options.what):
                print(text)
            if not options.follow:
                return 0
            sys.stdout.flush()
            line, request, of_run = run["last_line"], run["last_request"], run["run"]
            time.sleep(_INTERVAL)
    except KeyboardInterrupt:
        return 0


def _texts(run: Mapping[str, Any], what: str | None) -> list[str]:
    """Return the log of ``run``, an answer of GET /state, as text; ``what``: only lines of this kind."""
    entries = [(each["time"], line_text(each, run["vms"])) for each in run["lines"] if what in (None, each["what"])]
    if what is None:
        entries += [(iso(each["from"]), _answer_text(each)) for each in run["answers"]]
    return [printable(f"{moment} {text}") for moment, text in sorted(entries, key=lambda entry: entry[0])]


def _answer_text(answer: Mapping[str, Any]) -> str:
    words = [answer["vm"] or "-", answer["method"], answer["route"], answer["status"] or "unanswered", answer["fault"]]
    if answer["count"] > 1:
        words.append(f"({answer['count']} times)")
    return " ".join(str(each) for each in words if each)
