# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Verbs that send one request to the control API of a running simulator."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Callable, NamedTuple
from urllib.parse import quote, urlencode

from .control_client import Call, request
from .environment import parse_arguments
from .options import DEFAULT_CONTROL, add_token_option
from .program import program_name


class Argument(NamedTuple):
    """An argument of a verb, as ``argparse`` takes it."""

    name: str
    options: Mapping[str, Any]


class Verb(NamedTuple):
    """A verb of the command line; ``call`` makes the request from the parsed arguments."""

    name: str
    help: str
    arguments: Sequence[Argument]
    call: Callable[[argparse.Namespace], Call]


def run_control_command(argv: Sequence[str]) -> int:
    """Execute a verb and return the exit code.

    Prints the answer as JSON, or the error on stderr. Exit codes: 0, 1 when the simulator refused
    or cannot be reached, 2 for arguments that make no request.
    """
    options = parse_arguments(_parser(VERBS[argv[0]]), argv[1:], argv[0])
    try:
        call = options.call(options)
    except ValueError as error:
        print(f"{program_name()}: {error}", file=sys.stderr)
        return 2
    status, answer = send(options, call)
    if status not in (200, 201):
        print(f"{program_name()}: {answer}", file=sys.stderr)
        return 1
    for warning in answer.get("warnings", ()):
        print(f"{program_name()}: warning: {warning}", file=sys.stderr)
    print(json.dumps(answer, indent=2))
    return 0


def _parser(verb: Verb) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"{program_name()} {verb.name}", description=verb.help)
    add_control_option(parser)
    for argument in verb.arguments:
        parser.add_argument(argument.name, **argument.options)
    parser.set_defaults(call=verb.call)
    return parser


def add_control_option(parser: argparse.ArgumentParser) -> None:
    """Add the options that name the control API and its token."""
    parser.add_argument(
        "--control",
        metavar="HOST:PORT|URL",
        default=f"http://{DEFAULT_CONTROL}",
        help=f"the control API (default $IMDS_SIMULATOR_CONTROL, else http://{DEFAULT_CONTROL})",
    )
    add_token_option(parser, "the token of the control API")


def send(options: argparse.Namespace, call: Call) -> tuple[int, Any]:
    """Send ``call`` to the control API that ``options`` name; see ``control_client.request``."""
    return request(_url(options.control), call, options.control_token or "")


def _url(control: str) -> str:
    """Return the control API as a URL; HOST:PORT, the form of the simulator's ``--control``, is accepted too."""
    return (control if "://" in control else "http://" + control).rstrip("/")


# -- requests


def _get(path: str, *query: str) -> Callable[[argparse.Namespace], Call]:
    def call(options: argparse.Namespace) -> Call:
        given = _options_set(options, query)
        return Call("GET", path + ("?" + urlencode(given) if given else ""))

    return call


def _event_call(action: str, *body: str) -> Callable[[argparse.Namespace], Call]:
    def call(options: argparse.Namespace) -> Call:
        return Call("POST", f"/events/{quote(options.event, safe='')}/{action}", _options_set(options, body))

    return call


def _schedule(options: argparse.Namespace) -> Call:
    return Call("POST", "/events", {**options.json, **_options_set(options, (*_EDIT_KEYS, *_SCHEDULE_KEYS, "hold"))})


def _fail(options: argparse.Namespace) -> Call:
    return Call("POST", "/fail", _options_set(options, ("resources", "type")))


def _fault(options: argparse.Namespace) -> Call:
    if options.what in ("list", "kinds"):
        return Call("GET", "/faults" if options.what == "list" else "/fault-kinds")
    if options.what == "clear":
        return Call("DELETE", f"/faults/{quote(options.which, safe='')}" if options.which else "/faults")
    if not options.which:
        raise ValueError("fault inject: the kind is missing; 'fault kinds' lists the kinds")
    body = {"kind": options.which, **_options_set(options, ("vm", *_FAULT_KEYS))}
    for text in options.set:
        name, _equals, value = text.partition("=")
        body[name] = _parse_option_value(name, value)
    return Call("POST", "/faults", body)


def _knob(options: argparse.Namespace) -> Call:
    if not options.pairs:
        return Call("GET", "/knobs")
    return Call("POST", "/knobs", dict(text.partition("=")[::2] for text in options.pairs))


def _incarnation(options: argparse.Namespace) -> Call:
    return Call("POST", "/incarnation", _options_set(options, ("group", "to", "add")))


def _note(options: argparse.Namespace) -> Call:
    return Call("POST", "/notes", {"vm": options.vm, "what": options.what, **_options_set(options, ("event",))})


def _disable(options: argparse.Namespace) -> Call:
    return Call("POST", "/disable", {"group": options.group})


def _advance(options: argparse.Namespace) -> Call:
    return Call("POST", "/advance", {"seconds": options.duration})


def _options_set(options: argparse.Namespace, names: Sequence[str]) -> dict[str, Any]:
    return {name: getattr(options, name) for name in names if getattr(options, name) is not None}


def _parse_option_value(name: str, value: str) -> Any:
    """Return a fault option as its type: text where the schema requires text, else JSON if it is JSON."""
    if name in ("body", "body_base64", "content_type", "location"):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


def _names(text: str) -> list[str]:
    return text.split(",")


def _json_object(text: str) -> Mapping[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError(f'{text!r} is not a JSON object such as {{"impact_for": 3}}')
    return value


# -- arguments


def _argument(name: str, metavar: str | None = None, **options: Any) -> Argument:
    return Argument(name, options if metavar is None else {"metavar": metavar, **options})


_EDIT_KEYS = ("type", "resources", "notice", "duration", "source", "description")
_SCHEDULE_KEYS = ("name", "at", "id", "started_for", "batch", "starts", "cancel_after")
_FAULT_KEYS = ("route", "method", "requests", "from", "to", "for")

_EVENT = _argument("event", "EVENT", help="name or EventId")
_GROUP = _argument("group", "GROUP")
_AFTER = _argument("--after", "NUMBER")
_EDITS = (
    _argument("--type", "TYPE"),
    _argument("--resources", "VM,VM", type=_names),
    _argument("--notice", "DURATION", help="time to NotBefore"),
    _argument("--duration", "SECONDS", type=int, help="DurationInSeconds"),
    _argument("--source", "SOURCE", help="Platform or User"),
    _argument("--description", "TEXT"),
)

_ALL_VERBS = (
    Verb(
        "schedule",
        "schedule an event",
        (
            *_EDITS,
            *(_argument("--" + key.replace("_", "-"), "VALUE") for key in _SCHEDULE_KEYS),
            _argument(
                "--hold", action="store_true", default=None, help="other tenants hold it until released or NotBefore"
            ),
            _argument(
                "--json", "JSON", type=_json_object, default={}, help="further keys of the event, as a JSON object"
            ),
        ),
        _schedule,
    ),
    Verb(
        "approve",
        "approve an event without IMDS, or release it as the other tenants",
        (
            _EVENT,
            _argument(
                "--as",
                "WHO",
                default="control-plane",
                help="control-plane (default), other-tenants, or a VM of the group",
            ),
        ),
        _event_call("approve", "as"),
    ),
    Verb("cancel", "cancel a Scheduled event", (_EVENT,), _event_call("cancel")),
    Verb("complete", "end an event now", (_EVENT,), _event_call("complete")),
    Verb(
        "change",
        "change an event as clients see it",
        (_EVENT, *_EDITS, _argument("--status", choices=("Scheduled", "Started"))),
        _event_call("change", *_EDIT_KEYS, "status"),
    ),
    Verb(
        "fail",
        "simulate a failure of the hardware under VMs",
        (_argument("resources", "VM", nargs="+"), _argument("--type", choices=("Reboot", "Redeploy"))),
        _fail,
    ),
    Verb(
        "fault",
        "inject, list or clear faults",
        (
            _argument("what", choices=("inject", "list", "clear", "kinds")),
            _argument("which", "KIND|NUMBER", nargs="?", help="kind to inject, or number to clear (none: all)"),
            _argument("--vm", "VM,VM", type=_names),
            *(_argument("--" + key, "VALUE") for key in _FAULT_KEYS),
            _argument(
                "--set",
                "OPTION=VALUE",
                action="append",
                default=[],
                help="an option of the kind, such as status=503; repeatable",
            ),
        ),
        _fault,
    ),
    Verb(
        "knob",
        "show or set knobs",
        (_argument("pairs", "NAME=VALUE", nargs="*", help="knobs to set (none: show all knobs)"),),
        _knob,
    ),
    Verb(
        "incarnation",
        "change DocumentIncarnation without a change of events",
        (_GROUP, _argument("--to", "N", type=int), _argument("--add", "N", type=int)),
        _incarnation,
    ),
    Verb("disable", "disable the service for a group, as after 24 h without requests", (_GROUP,), _disable),
    Verb(
        "note",
        "log a step that the simulator cannot observe, such as: prepared, recovered",
        (_argument("vm", "VM"), _argument("what", "TEXT"), _argument("--event", "EVENT", help="name or EventId")),
        _note,
    ),
    Verb("advance", "move the clock forward by a simulated duration", (_argument("duration", "DURATION"),), _advance),
    Verb("state", "show the state of the simulator", (), _get("/state")),
    Verb("events", "show the events", (), _get("/events")),
    Verb(
        "log",
        "show the log of events, approvals and control requests",
        (_argument("--what", "WHAT", help="only lines of this kind, such as approval or started"), _AFTER),
        _get("/log", "what", "after"),
    ),
    Verb(
        "requests",
        "show recent requests, and the number of requests",
        (_argument("--vm", "VM"), _AFTER),
        _get("/requests", "vm", "after"),
    ),
)
VERBS: Mapping[str, Verb] = {verb.name: verb for verb in _ALL_VERBS}
