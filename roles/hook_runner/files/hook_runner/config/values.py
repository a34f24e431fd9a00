# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Parsers for texts and mappings of the configuration. Each returns the parsed value or raises ValueError."""

from __future__ import annotations

import ipaddress
import os
import re
from functools import partial
from typing import Any

from azure_scheduled_events.options import check_key, parse_integer, parse_option
from hook_runner.records import STAGES

# characters that sort equally in every locale and need no quotes
HOOK_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
# who approves an event of several VMs by a rule
SELF_ONLY, FIRST, EXTERNAL = LEADERS = ("self-only", "first", "external")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_UNUSABLE = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")
# bytes; the path of a socket in it has at most 107
_LONGEST_RUN_DIRECTORY = 94


def text(value: Any) -> str:
    """Return a text without control characters and surrogates, which neither files nor variables can have."""
    if not isinstance(value, str):
        raise ValueError(f"expected a text, not {value!r}; put a text that YAML reads as another type in quotes")
    if _UNUSABLE.search(value):
        raise ValueError(f"{value!r} has control characters or surrogates")
    return value


def path(value: Any) -> str:
    """Return an absolute path."""
    written = text(value)
    if not os.path.isabs(written):
        raise ValueError(f"expected an absolute path, not {written!r}")
    return os.path.normpath(written)


def run_path(value: Any) -> str:
    """Return an absolute path of a folder for sockets."""
    written = path(value)
    if len(os.fsencode(written)) > _LONGEST_RUN_DIRECTORY:
        raise ValueError(f"expected at most {_LONGEST_RUN_DIRECTORY} bytes, because sockets are in it, not {written!r}")
    return written


def optional_path(value: Any) -> str:
    """Return an absolute path, or an empty text."""
    return "" if value == "" else path(value)


def loopback_address(value: Any) -> str:
    """Return ADDRESS:PORT with an address of the loopback interface, such as 127.0.0.1:9758; or an empty text."""
    if value == "":
        return ""
    host, _colon, port = text(value).rpartition(":")
    try:
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        raise ValueError(f"expected an address and a port such as 127.0.0.1:9758, not {value!r}") from None
    if not address.is_loopback:
        raise ValueError(f"{host} is not an address of the loopback interface; use 127.0.0.1 or [::1]")
    parse_option("port", port, partial(parse_integer, least=1, most=65535))
    return str(value)


def limit(value: Any) -> str:
    """Return a limit of a unit, as unit files have it."""
    written = str(value)
    if isinstance(value, bool) or not isinstance(value, (str, int)) or not written.strip() or not written.isprintable():
        raise ValueError(f"expected a text or a number, not {value!r}")
    return written


def hook_key(value: Any) -> str:
    """Return ``NAME`` or ``STAGE/NAME`` of a hook."""
    stage, slash, name = text(value).rpartition("/")
    if slash:
        check_key(stage, STAGES, "stage")
    if not HOOK_NAME.fullmatch(name):
        raise ValueError(f"{name!r} cannot be the name of a hook")
    return str(value)


def variable(name: Any) -> str:
    """Return the name of a variable for hooks."""
    if not isinstance(name, str) or not _VARIABLE.fullmatch(name):
        raise ValueError(f"{name!r} cannot be the name of a variable")
    if name.startswith(("EVENT_", "HOOK_")):
        raise ValueError(f"{name}: the service sets variables that begin with EVENT_ or HOOK_; choose another name")
    return name
