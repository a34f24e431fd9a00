# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The options of the command line, and their types."""

from __future__ import annotations

import argparse
import ipaddress
import math
from collections.abc import Sequence
from typing import Any, Callable

from .. import __version__
from ..scenario.groups import Address, parse_address, source_address
from .commands import overview
from .program import program_name

DEFAULT_LISTEN = Address("127.0.0.1", 8169)
DEFAULT_CONTROL = Address("127.0.0.1", 8168)
_SHORTEST_TOKEN = 8

_EPILOG = f"""
Further verbs, each with --help of its own:
{overview()}
  schedule, approve, cancel, complete, change, fail, fault, knob, incarnation, disable, note, advance, state,
  events, log, requests           send a request to the control API of a running simulator

Each long option is also an environment variable: --speed is IMDS_SIMULATOR_SPEED. An argument has precedence.
Several values of a repeatable option are separated by line ends, or by commas before the next NAME=.
"""


_SERVES = (
    "A local simulator of Azure Scheduled Events (IMDS). Serves in the foreground until SIGTERM, SIGINT or SIGHUP."
)
_EXECUTES = """
Runs a command while a simulator serves, and returns its exit code:
  exec [OPTIONS] -- COMMAND ARGUMENTS...
The command has the URLs of the simulator in IMDS_SIMULATOR_ENDPOINT (the first VM), IMDS_SIMULATOR_ENDPOINTS
(a JSON object with those of all VMs) and IMDS_SIMULATOR_CONTROL.
"""


def serve_parser(verb: str = "", description: str = _SERVES) -> argparse.ArgumentParser:
    """Return the parser of the options of serving (no verb), which those of ``verb`` begin with."""
    parser = argparse.ArgumentParser(
        prog=f"{program_name()} {verb}".strip(),
        description=description,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--scenario", metavar="FILE", help="scenario file, or the name of a shipped scenario")
    parser.add_argument(
        "--listen",
        metavar="HOST:PORT",
        type=to_address,
        default=DEFAULT_LISTEN,
        help="address of the first VM, and of all VMs that are identified by source address; further VMs "
        "without an address of their own use the ports that follow; port 0: any free port "
        f"(default {DEFAULT_LISTEN})",
    )
    _add_control_options(parser)
    parser.add_argument(
        "--speed", metavar="N", type=_speed, help="simulated seconds per second (default 1, or the scenario's)"
    )
    parser.add_argument("--vm", metavar="NAME", help="name of the only VM when there is no scenario (default vm1)")
    parser.add_argument(
        "--source",
        metavar="VM=ADDRESS",
        type=_source,
        action="append",
        default=[],
        help="identify this VM of the scenario by its source address; repeatable",
    )
    parser.add_argument(
        "--knob", metavar="NAME=VALUE", type=_pair, action="append", default=[], help="set a knob; repeatable"
    )
    parser.add_argument(
        "--clock", choices=("real", "manual"), default="real", help="manual: only 'advance' moves the clock"
    )
    parser.add_argument(
        "--report", metavar="FILE", help="write the run as an HTML file with a time line when the simulator stops"
    )
    parser.add_argument("--quiet", action="store_true", help="print the addresses, but not the log")
    instead = parser.add_argument_group("instead of serving")
    instead.add_argument("--list-scenarios", action="store_true", help="list the shipped scenarios")
    instead.add_argument("--check", metavar="FILE", help="check a scenario file")
    instead.add_argument("--schema", action="store_true", help="print the JSON Schema of scenario files")
    instead.add_argument("--list-knobs", action="store_true", help="list the knobs with their defaults")
    instead.add_argument("--list-faults", action="store_true", help="list the faults that can be injected")
    instead.add_argument("--version", action="version", version=f"{program_name()} {__version__}")
    return parser


def exec_parser() -> argparse.ArgumentParser:
    """Return the parser of the options of ``exec``: those of serving, and its own."""
    parser = serve_parser("exec", _EXECUTES)
    group = parser.add_argument_group("the address of IMDS", "Nearly every client has it hard-wired.")
    group.add_argument(
        "--imds-address",
        action="store_true",
        help="run the command in a network namespace of its own, in which http://169.254.169.254 is the simulator; "
        "needs no root",
    )
    group.add_argument(
        "--imds-vm", metavar="NAME", help="the VM of that address (default: default_vm of the scenario, or the first)"
    )
    group.add_argument(
        "--keep-network",
        action="store_true",
        help="add the address to lo of the present network instead; needs root or the capability NET_ADMIN",
    )
    group.add_argument("--as-root", action="store_true", help="the command sees the user id 0 instead of its own")
    return parser


def _add_control_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--control",
        metavar="HOST:PORT",
        type=to_address,
        default=DEFAULT_CONTROL,
        help=f"address of the control API (default {DEFAULT_CONTROL})",
    )
    parser.add_argument(
        "--control-anywhere",
        action="store_true",
        help="allow a --control address that is not loopback without --control-token",
    )
    add_token_option(parser, "clients of the control API have to send this token; the page asks for it")


def add_token_option(parser: argparse.ArgumentParser, meaning: str) -> None:
    """Add ``--control-token``, for the simulator or for a verb."""
    parser.add_argument(
        "--control-token",
        metavar="TOKEN",
        type=_token,
        help=f"{meaning} (default $IMDS_SIMULATOR_CONTROL_TOKEN)",
    )


def control_problem(options: argparse.Namespace) -> str:
    """Return why the control API may not use its address, or an empty text."""
    if is_loopback(options.control) or options.control_token or options.control_anywhere:
        return ""
    return (
        f"--control: {options.control} is not a loopback address, and the control API has no token; "
        "set --control-token, or add --control-anywhere to allow requests without a token"
    )


def is_loopback(address: Address) -> bool:
    """Return True if only this machine can connect to ``address``."""
    if address.host == "localhost":
        return True
    try:
        return ipaddress.ip_address(address.host).is_loopback
    except ValueError:
        return False


def _argument_type(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    """Return an argument type that calls ``parse``.

    Turns ValueError into ArgumentTypeError, the only error whose text ``argparse`` prints.
    """

    def convert(text: str) -> Any:
        try:
            return parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return convert


def _parse_pair(text: str) -> Sequence[str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise ValueError(f"{text!r} is not NAME=VALUE")
    return (name, value)


def _parse_source(text: str) -> Sequence[str]:
    name, address = _parse_pair(text)
    return (name, source_address(address))


def _parse_token(text: str) -> str:
    # a header carries it
    if len(text) < _SHORTEST_TOKEN or not text.isascii() or not text.isprintable() or " " in text:
        raise ValueError(
            f"the token is not one word of at least {_SHORTEST_TOKEN} ASCII characters; openssl rand -hex 16 makes one"
        )
    return text


def _parse_speed(text: str) -> float:
    try:
        speed = float(text)
    except ValueError:
        speed = math.nan
    if not 0 < speed < float("inf"):
        raise ValueError(f"{text!r} is not a number above 0")
    return speed


to_address = _argument_type(parse_address)
_pair = _argument_type(_parse_pair)
_source = _argument_type(_parse_source)
_speed = _argument_type(_parse_speed)
_token = _argument_type(_parse_token)
