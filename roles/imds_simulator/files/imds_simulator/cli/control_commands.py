# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Verbs that send one request to the control API of a running simulator."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Callable, NamedTuple
from urllib.parse import quote, urlencode

import click

from ..faults.fault import Window
from ..faults.kinds import KINDS
from ..keys import keys_of
from ..scenario.plans import Change, EventPlan, IncarnationStep
from ..value_types import NAME, one_of
from .control_client import Call, send
from .options import control_options
from .output import fail, print_problem
from .parsing import Command, Parsed, option, parse, typed


class Verb(NamedTuple):
    """A verb; ``call`` makes the request of its options, of which those that were not given are left out."""

    command: Command
    call: Callable[[dict[str, Any]], Call]


def run_control_command(verb: Verb, arguments: Sequence[str]) -> int:
    """Execute a verb, print the answer as JSON, and return the exit code."""
    options = parse(verb.command, arguments)
    names = {str(each.name) for each in verb.command.params} - {"control", "control_token"}
    given = {name: value for name, value in vars(options).items() if name in names and value is not None}
    answer = send(options, verb.call(given))
    for warning in answer.get("warnings", ()):
        print_problem(f"warning: {warning}")
    print(json.dumps(answer, indent=2))
    return 0


def _get(path: str) -> Callable[[dict[str, Any]], Call]:
    """Return the request whose query has the options."""
    return lambda given: Call("GET", path + ("?" + urlencode(given) if given else ""))


def _post(path: str) -> Callable[[dict[str, Any]], Call]:
    """Return the request whose body has the options, except for those that ``path`` names in braces."""

    def call(given: dict[str, Any]) -> Call:
        filled = re.sub(r"{(\w+)}", lambda name: quote(given.pop(name[1]), safe=""), path)
        return Call("POST", filled, given)

    return call


def _knob(given: dict[str, Any]) -> Call:
    words = given["pairs"]
    names = [each for each in words if "=" not in each]
    if len(names) == len(words):
        return Call("GET", "/knobs?" + urlencode([("name", each) for each in names]))
    if names:
        fail(f"knob {names[0]}: without a value among knobs to set; give NAME=VALUE, or show knobs by another command")
    return Call("POST", "/knobs", dict(each.partition("=")[::2] for each in words))


def _fault(given: dict[str, Any]) -> Call:
    what, which = given.pop("what"), given.pop("which", "")
    unused = [f"--{name}" for name, value in given.items() if value and what != "inject"]
    if unused:
        fail(f"fault {what}: only fault inject takes {', '.join(unused)}; 'fault clear NUMBER' ends one fault")
    if what in ("list", "kinds"):
        if which:
            fail(f"fault {what}: takes no KIND or NUMBER, such as {which}")
        return Call("GET", "/faults" if what == "list" else "/fault-kinds")
    if what == "clear":
        return Call("DELETE", f"/faults/{quote(which, safe='')}" if which else "/faults")
    if not which:
        fail("fault inject: the kind is missing; 'fault kinds' lists the kinds")
    keys = KINDS[which].keys if which in KINDS else {}
    for name, _equals, text in (each.partition("=") for each in given.pop("set")):
        given[name] = keys[name].type.from_text(text) if name in keys else text
    return Call("POST", "/faults", {"kind": which, **given})


def _options_of(cls: Any, *left_out: str) -> list[click.Option]:
    """Return an option for each key of the dataclass ``cls`` whose value is a text of one word or more."""
    return [
        option(name.replace("_", "-"), each.type.metavar, each.meaning, each.type.from_text)
        for name, each in keys_of(cls).items()
        if name not in left_out
    ]


def _argument(name: str, metavar: str, **more: Any) -> click.Argument:
    return click.Argument([name], metavar=metavar, **more)


EVENT = _argument("event", "EVENT", type=Parsed(typed(NAME)))
_GROUP = _argument("group", "GROUP")
_FAILURES = one_of("Reboot", "Redeploy")
_WHO = option("as", "WHO", "control-plane (default), other-tenants, arm, or a VM of the group", default="control-plane")

_ALL: Sequence[tuple[str, str, Callable[[dict[str, Any]], Call], Sequence[click.Parameter]]] = (
    (
        "schedule",
        "schedule an event",
        _post("/events"),
        _options_of(EventPlan, "changes"),
    ),
    (
        "approve",
        "approve an event as the control plane, the other tenants, Azure Resource Manager or a VM",
        _post("/events/{event}/approve"),
        (EVENT, _WHO),
    ),
    ("cancel", "cancel a Scheduled event", _post("/events/{event}/cancel"), (EVENT,)),
    ("complete", "end an event now", _post("/events/{event}/complete"), (EVENT,)),
    (
        "change",
        "change an event as clients see it",
        _post("/events/{event}/change"),
        (EVENT, *_options_of(Change, "after", "after_start", "action", "impact_for")),
    ),
    (
        "fail",
        "simulate a failure of the hardware under VMs",
        _post("/fail"),
        (
            _argument("resources", "VM...", nargs=-1, required=True),
            option("type", _FAILURES.metavar, "the EventType", typed(_FAILURES)),
        ),
    ),
    (
        "fault",
        "inject, list or clear faults",
        _fault,
        (
            _argument("what", "inject|list|clear|kinds", type=click.Choice(["inject", "list", "clear", "kinds"])),
            _argument("which", "[KIND|NUMBER]", required=False),
            *_options_of(Window),
            option("set", "OPTION=VALUE", "an option of the kind, such as status=503; repeatable", multiple=True),
        ),
    ),
    ("knob", "show or set knobs", _knob, (_argument("pairs", "[NAME|NAME=VALUE]...", nargs=-1),)),
    (
        "incarnation",
        "change DocumentIncarnation without a change of events",
        _post("/incarnation"),
        (_GROUP, *_options_of(IncarnationStep, "at", "group")),
    ),
    ("disable", "disable the service for a group, as after 24 h without requests", _post("/disable"), (_GROUP,)),
    (
        "note",
        "log a step of a VM, such as: prepared, recovered",
        _post("/notes"),
        (_argument("vm", "VM"), _argument("what", "TEXT"), option("event", "EVENT", "name or EventId")),
    ),
    (
        "advance",
        "move the clock forward by a simulated duration",
        _post("/advance"),
        (_argument("seconds", "DURATION"),),
    ),
    ("state", "show the state of the simulator", _get("/state"), ()),
    ("events", "show the events", _get("/events"), ()),
    (
        "requests",
        "show recent requests, and the number of requests",
        _get("/requests"),
        (option("vm", "VM", "only requests of this VM"),),
    ),
)
VERBS = {name: Verb(Command(name, text, [*control_options(), *own]), call) for name, text, call, own in _ALL}
