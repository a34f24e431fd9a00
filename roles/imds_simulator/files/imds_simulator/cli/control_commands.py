# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Verbs that speak to the control API of a running simulator."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Callable
from urllib.parse import quote, urlencode

from .control_client import Call, request
from .options import DEFAULT_CONTROL


def run_control_command(argv: Sequence[str]) -> int:
    """Carry out a verb: print the answer as JSON, or the error on stderr with exit code 1."""
    options = _parser().parse_args(argv)
    try:
        call = options.call(options)
    except ValueError as error:
        print(f"imds_simulator: {error}", file=sys.stderr)
        return 2
    status, answer = request(_url(options.control), call)
    if status != 200 and status != 201:
        print(f"imds_simulator: {answer}", file=sys.stderr)
        return 1
    print(json.dumps(answer, indent=2))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="imds_simulator")
    verbs = parser.add_subparsers(dest="verb", required=True)
    for name, (add, call) in VERBS.items():
        verb = verbs.add_parser(name, help=call.__doc__, description=call.__doc__)
        verb.add_argument(
            "--control",
            metavar="HOST:PORT|URL",
            default=os.environ.get("IMDS_SIMULATOR_CONTROL", f"http://{DEFAULT_CONTROL}"),
            help=f"the control API (default $IMDS_SIMULATOR_CONTROL, else http://{DEFAULT_CONTROL})",
        )
        add(verb)
        verb.set_defaults(call=call)
    return parser


def _url(control: str) -> str:
    """The control API as a URL; HOST:PORT, as ``--control`` of the simulator has it, is one too."""
    return (control if "://" in control else "http://" + control).rstrip("/")


def _options_set(options: argparse.Namespace, names: Sequence[str]) -> dict[str, Any]:
    return {name: getattr(options, name) for name in names if getattr(options, name) is not None}


def _event_options(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--type", metavar="TYPE")
    verb.add_argument("--resources", metavar="VM,VM", type=lambda text: text.split(","))
    verb.add_argument("--notice", metavar="DURATION", help="time to NotBefore")
    verb.add_argument("--duration", metavar="SECONDS", type=int, help="DurationInSeconds")
    verb.add_argument("--source", metavar="SOURCE", help="Platform or User")
    verb.add_argument("--description", metavar="TEXT")


def _add_schedule(verb: argparse.ArgumentParser) -> None:
    _event_options(verb)
    for name in ("name", "at", "id", "started_for", "batch", "starts", "cancel_after"):
        verb.add_argument("--" + name.replace("_", "-"), metavar="VALUE")
    verb.add_argument(
        "--hold", action="store_true", default=None, help="other tenants hold it until released or NotBefore"
    )
    verb.add_argument(
        "--json", metavar="JSON", type=_json_object, default={}, help="further keys of the event, as a JSON object"
    )


def _json_object(text: str) -> Mapping[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError(f'{text!r} is not a JSON object such as {{"impact_for": 3}}')
    return value


def _schedule(options: argparse.Namespace) -> Call:
    """schedule an event"""
    names = (
        "type",
        "resources",
        "notice",
        "duration",
        "source",
        "description",
        "name",
        "at",
        "id",
        "started_for",
        "batch",
        "starts",
        "cancel_after",
        "hold",
    )
    return Call("POST", "/events", {**options.json, **_options_set(options, names)})


def _event(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("event", metavar="EVENT", help="name or EventId")


def _add_approve(verb: argparse.ArgumentParser) -> None:
    _event(verb)
    verb.add_argument(
        "--as",
        dest="who",
        metavar="WHO",
        default="control-plane",
        help="control-plane (default), other-tenants, or a VM of the group",
    )


def _approve(options: argparse.Namespace) -> Call:
    """approve an event without IMDS, or release it as the other tenants"""
    return Call("POST", f"/events/{quote(options.event, safe='')}/approve", {"as": options.who})


def _cancel(options: argparse.Namespace) -> Call:
    """cancel a Scheduled event"""
    return Call("POST", f"/events/{quote(options.event, safe='')}/cancel", {})


def _complete(options: argparse.Namespace) -> Call:
    """end an event now"""
    return Call("POST", f"/events/{quote(options.event, safe='')}/complete", {})


def _add_change(verb: argparse.ArgumentParser) -> None:
    _event(verb)
    _event_options(verb)
    verb.add_argument("--status", choices=("Scheduled", "Started"))


def _change(options: argparse.Namespace) -> Call:
    """change what clients see of an event"""
    names = ("type", "resources", "notice", "duration", "source", "description", "status")
    return Call("POST", f"/events/{quote(options.event, safe='')}/change", _options_set(options, names))


def _add_fail(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("vms", metavar="VM", nargs="+")
    verb.add_argument("--type", choices=("Reboot", "Redeploy"))


def _fail(options: argparse.Namespace) -> Call:
    """let the hardware under VMs fail"""
    return Call("POST", "/fail", {"resources": options.vms, **_options_set(options, ("type",))})


def _add_fault(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("what", choices=("inject", "list", "clear", "kinds"))
    verb.add_argument("which", metavar="KIND|NUMBER", nargs="?", help="kind to inject, or number to clear (none: all)")
    verb.add_argument("--vm", type=lambda text: text.split(","), metavar="VM,VM")
    for name in ("route", "method", "requests", "from", "to", "for"):
        verb.add_argument("--" + name, metavar="VALUE")
    verb.add_argument(
        "--set", metavar="OPTION=VALUE", action="append", default=[], help="an option of the kind, such as status=503"
    )


def _fault(options: argparse.Namespace) -> Call:
    """inject, list or clear faults"""
    if options.what in ("list", "kinds"):
        return Call("GET", "/faults" if options.what == "list" else "/fault-kinds")
    if options.what == "clear":
        return Call("DELETE", f"/faults/{quote(options.which, safe='')}" if options.which else "/faults")
    if not options.which:
        raise ValueError("fault inject needs a kind; 'fault kinds' lists them")
    body = {"kind": options.which, **_options_set(options, ("vm", "route", "method", "requests", "from", "to", "for"))}
    for text in options.set:
        name, _equals, value = text.partition("=")
        body[name] = _parse_option_value(name, value)
    return Call("POST", "/faults", body)


def _parse_option_value(name: str, value: str) -> Any:
    """An option as its type: text where the schema wants text, else JSON where it is JSON."""
    if name in ("body", "body_base64", "content_type", "location"):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


def _add_knob(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("pairs", metavar="NAME=VALUE", nargs="*", help="none: show all knobs")


def _knob(options: argparse.Namespace) -> Call:
    """show or set knobs"""
    return (
        Call("POST", "/knobs", dict(text.partition("=")[::2] for text in options.pairs))
        if options.pairs
        else Call("GET", "/knobs")
    )


def _add_incarnation(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("group", metavar="GROUP")
    verb.add_argument("--to", type=int, metavar="N")
    verb.add_argument("--add", type=int, metavar="N")


def _incarnation(options: argparse.Namespace) -> Call:
    """let DocumentIncarnation jump although no event changed"""
    return Call("POST", "/incarnation", {"group": options.group, **_options_set(options, ("to", "add"))})


def _disable(options: argparse.Namespace) -> Call:
    """disable the service for a group, as after 24 h of silence"""
    return Call("POST", "/disable", {"group": options.group})


def _advance(options: argparse.Namespace) -> Call:
    """move the clock by a simulated duration"""
    return Call("POST", "/advance", {"seconds": options.duration})


def _get_command(path: str, doc: str) -> Callable[[argparse.Namespace], Call]:
    def call(options: argparse.Namespace) -> Call:
        query = {
            name: value
            for name, value in vars(options).items()
            if name in ("vm", "what", "after") and value is not None
        }
        return Call("GET", path + ("?" + urlencode(query) if query else ""))

    call.__doc__ = doc
    return call


def _no_options(_verb: argparse.ArgumentParser) -> None:
    """This verb takes no further options."""


def _add_log(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--what", metavar="WHAT", help="only lines of this kind, such as approval or started")
    verb.add_argument("--after", metavar="NUMBER")


def _add_requests(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--vm", metavar="VM")
    verb.add_argument("--after", metavar="NUMBER")


VERBS: Mapping[str, tuple[Callable[[argparse.ArgumentParser], None], Callable[[argparse.Namespace], Call]]] = {
    "schedule": (_add_schedule, _schedule),
    "approve": (_add_approve, _approve),
    "cancel": (_event, _cancel),
    "complete": (_event, _complete),
    "change": (_add_change, _change),
    "fail": (_add_fail, _fail),
    "fault": (_add_fault, _fault),
    "knob": (_add_knob, _knob),
    "incarnation": (_add_incarnation, _incarnation),
    "disable": (lambda verb: _add_positional(verb, "group"), _disable),
    "advance": (lambda verb: _add_positional(verb, "duration"), _advance),
    "state": (_no_options, _get_command("/state", "show everything")),
    "events": (_no_options, _get_command("/events", "show the events")),
    "log": (_add_log, _get_command("/log", "show what happened and who approved")),
    "requests": (_add_requests, _get_command("/requests", "show recent requests and counts")),
}


def _add_positional(verb: argparse.ArgumentParser, name: str) -> None:
    verb.add_argument(name, metavar=name.upper())
