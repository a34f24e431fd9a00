# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The options of serving, of ``exec`` and of all verbs, and their types."""

from __future__ import annotations

import os
from urllib.parse import urlsplit

import click

from ..keys import keys_of
from ..scenario.groups import Address, Group, Vm, parse_address, source_address
from ..scenario.plans import Scenario
from ..value_types import NAMES, TOKEN, integer, one_of
from .parsing import CONTROL, CONTROL_TOKEN, Option, flag, option, typed

DEFAULT_LISTEN = Address("127.0.0.1", 8169)
DEFAULT_CONTROL = Address("127.0.0.1", 8168)
FREE_PORT = Address("127.0.0.1", 0)
_SHORTEST_TOKEN = 8
_SPEED = keys_of(Scenario)["speed"].type
_CLOCK = one_of("real", "manual")
# each has a port of its own
_NUMBER_OF_VMS = integer(1, 10_000, "a number of VMs from 1 to 10000, or their names")


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise ValueError(f"{text!r} is not NAME=VALUE")
    return name, value


def _source(text: str) -> tuple[str, str]:
    name, address = _pair(text)
    return name, source_address(address)


def _token(text: str) -> str:
    if len(text) < _SHORTEST_TOKEN:
        raise ValueError(f"a token has at least {_SHORTEST_TOKEN} characters; openssl rand -hex 16 makes one")
    return str(typed(TOKEN)(text))


def _control_url(text: str) -> str:
    url = (text if "://" in text else "http://" + text).rstrip("/")
    if urlsplit(url).scheme not in ("http", "https"):
        raise ValueError(f"{text!r} is not HOST:PORT, http://HOST:PORT or https://HOST:PORT")
    return url


def http_address(text: str) -> Address:
    """Return the address of HOST:PORT or http://HOST[:PORT]; raise ValueError for any other text."""
    scheme, mark, host = text.rstrip("/").rpartition("://")
    if scheme not in ("", "http"):
        raise ValueError(f"{text!r} is not HOST:PORT or http://HOST:PORT")
    return parse_address(f"{host}:80" if mark and ":" not in host.rpartition("]")[2] else host)


class _ControlOption(Option):
    """The address at which to serve the control API."""

    def resolve_envvar_value(self, ctx: click.Context) -> str | None:
        """Ignore a URL: a command inside ``exec`` starts a simulator, and the variable is that of the outer one."""
        return None if "://" in os.environ.get(CONTROL, "") else super().resolve_envvar_value(ctx)


def _vm_names(text: str) -> tuple[str, ...]:
    """Return the names of VMs that ``text`` lists, or vm1, vm2, ... if it is their number."""
    if not isinstance(_NUMBER_OF_VMS.from_text(text), (int, float)):
        if "" in text.split(","):
            raise ValueError(f"{text!r} has an empty name; write NAME or NAME,NAME")
        names: tuple[str, ...] = typed(NAMES)(text)
        for _path, problem in Group(vms=tuple(Vm(name=each, resource_name=each) for each in names)).check():
            raise ValueError(problem)
        return names
    return tuple(f"vm{number + 1}" for number in range(typed(_NUMBER_OF_VMS)(text)))


def address_option(name: str, default: Address, meaning: str) -> Option:
    """Return an option for an address to listen at."""
    return option(name, "HOST:PORT", f"{meaning} (default {default})", parse_address, default=default)


def serving_options(listen: Address, control: Address) -> list[Option]:
    """Return the options of serving and of ``exec``, with these defaults."""
    return [
        option("scenario", "FILE", "scenario file, or the name of a shipped scenario"),
        address_option(
            "listen",
            listen,
            "address of the first VM, and of all VMs that are identified by source address; further VMs without an "
            "address of their own use the ports that follow; port 0: any free port",
        ),
        option(
            "control",
            "HOST:PORT|URL",
            f"address of the control API (default {control})",
            http_address,
            _ControlOption,
            default=control,
        ),
        flag("control-anywhere", "allow a --control address that is not loopback without --control-token"),
        _token_option("clients of the control API have to send this token; the page asks for it"),
        option("speed", "N", "simulated seconds per second (default 1, or the scenario's)", typed(_SPEED)),
        option("vms", "N|NAME,NAME", "number or names of the VMs when there is no scenario (default vm1)", _vm_names),
        option(
            "source",
            "VM=ADDRESS",
            "identify this VM of the scenario by its source address; repeatable",
            _source,
            multiple=True,
        ),
        flag("strict", "answer 429 above the rate limit; without it the log has a line"),
        option("knob", "NAME=VALUE", "set a knob; repeatable", _pair, multiple=True),
        option("clock", _CLOCK.metavar, "manual: only 'advance' moves the clock", typed(_CLOCK), default="real"),
        option("report", "FILE", "write the run as an HTML file with a time line when the simulator stops"),
        flag("quiet", "print no log; exec prints no addresses either"),
    ]


def _token_option(meaning: str) -> Option:
    return option("control-token", "TOKEN", f"{meaning} (default ${CONTROL_TOKEN})", _token, envvar=CONTROL_TOKEN)


def control_options() -> list[Option]:
    """Return the options of a verb that name the control API and its token."""
    default = f"http://{DEFAULT_CONTROL}"
    meaning = f"the control API (default ${CONTROL}, else {default})"
    return [
        option("control", "HOST:PORT|URL", meaning, _control_url, default=default, envvar=CONTROL),
        _token_option("the token of the control API"),
    ]


PRINTING_OPTIONS = [
    flag("list-scenarios", "list the shipped scenarios, and exit"),
    flag("list-knobs", "list the knobs with their defaults, and exit"),
    flag("list-faults", "list the faults that can be injected, and exit"),
    flag("schema", "print the JSON Schema of scenario files, and exit"),
    option("check", "FILE", "check a scenario file, and exit"),
    # an image may have a variable with its version
    flag("version", "print the version, and exit", allow_from_autoenv=False),
]
IMDS_OPTIONS = [
    flag(
        "imds-address",
        "run the command in a network namespace of its own, in which http://169.254.169.254 is the simulator; needs no "
        "root",
    ),
    option("imds-vm", "NAME", "the VM of that address (default: default_vm of the scenario, or the first)"),
]
# option of exec and join -> problem and remedy
REMOVED_IMDS_OPTIONS = {
    "--as-root": "this option was removed; write: -- unshare --map-root-user COMMAND",
    "--keep-network": "this option was removed; add the address to lo, and write: exec --listen 169.254.169.254:80 -- "
    "COMMAND",
}
