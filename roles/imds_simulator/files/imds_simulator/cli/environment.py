# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Options from environment variables.

Each long option is also a variable. An option of serving and of ``exec`` is ``IMDS_SIMULATOR_OPTION``, also
``--control`` and ``--control-token`` of every verb; any other option of a verb is ``IMDS_SIMULATOR_VERB_OPTION``.
An argument has precedence.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from ..suggestions import suggestion
from .program import program_name
from .removed import REMOVED_OPTIONS
from .strict_parsing import parse_strictly

PREFIX = "IMDS_SIMULATOR_"
CONTROL = PREFIX + "CONTROL"
CONTROL_TOKEN = PREFIX + "CONTROL_TOKEN"
ENDPOINT = PREFIX + "ENDPOINT"
ENDPOINTS = PREFIX + "ENDPOINTS"

# options that print something else, or that all verbs share
_NO_VARIABLE = ("help", "version")
_SHARED = ("--control", "--control-token")
_TRUE, _FALSE = ("1", "true", "yes", "on"), ("", "0", "false", "no", "off")
# values such as notice_overrides=Freeze:5m,Reboot:1m contain commas
_NEXT_VALUE = re.compile(r",(?=[^,=\s]+=)")


def parse_arguments(
    parser: argparse.ArgumentParser,
    arguments: Sequence[str],
    verb: str = "",
    environment: Mapping[str, str] | None = None,
    remedies: Mapping[str, str] = MappingProxyType({}),
) -> argparse.Namespace:
    """Return the options of ``arguments`` and of the environment.

    Ends the process with exit code 2 after a message that names the variable if a value is invalid, as ``parser``
    does for an argument. ``parser`` has no verbs of its own; ``verb`` is empty for serving and ``exec``; the variables
    are by default those of the process. ``remedies``: option of another verb to the end of the message about it.
    """
    add_environment(parser, arguments, verb, environment)
    return parse_strictly(parser, arguments, remedies)


def add_environment(
    parser: argparse.ArgumentParser,
    arguments: Sequence[str] = (),
    verb: str = "",
    environment: Mapping[str, str] | None = None,
) -> None:
    """Make the variables of the environment the defaults of ``parser``; see parse_arguments.

    The attribute ``from_environment`` of the options is the names of these variables.
    """
    parser.set_defaults(from_environment=())
    if {"-h", "--help", "--version"} & set(arguments):
        return
    present = os.environ if environment is None else environment
    known = variables(parser, verb)
    if verb:
        _warn((each for each in present if each.startswith(variable("--", verb))), known)
    used = []
    for name, action in known.items():
        text = present.get(name)
        if text is None or (not text and action.nargs != 0) or (name == CONTROL and _is_of_another(action, text)):
            continue
        try:
            action.default = _value(action, text)
        except argparse.ArgumentTypeError as error:
            parser.error(f"{name}: {error}")
        action.required = False
        used.append(name)
    parser.set_defaults(from_environment=tuple(used))


def variables(parser: argparse.ArgumentParser, verb: str = "") -> dict[str, argparse.Action]:
    """Return the name of each variable of ``parser``, with its option."""
    found: dict[str, argparse.Action] = {}
    for action in parser._actions:
        option = next((each for each in action.option_strings if each.startswith("--")), None)
        if option is not None and option.strip("-") not in _NO_VARIABLE:
            found[variable(option, verb)] = action
    return found


def variable(option: str, verb: str = "") -> str:
    """Return the variable of ``option``, such as IMDS_SIMULATOR_SPEED for ``--speed``."""
    words = [verb, option.strip("-")] if verb and option not in _SHARED else [option.strip("-")]
    return PREFIX + "_".join(words).replace("-", "_").upper()


def print_unknown(known: Iterable[str], verbs: Iterable[str]) -> None:
    """Print a warning on stderr for each variable that neither serving nor a verb has.

    ``known`` are the variables of serving; each verb checks its own variables.
    """
    names = {*known, CONTROL, CONTROL_TOKEN, ENDPOINT, ENDPOINTS}
    _warn((each for each in os.environ if not each.startswith(tuple(variable("--", verb) for verb in verbs))), names)


def _warn(present: Iterable[str], known: Iterable[str]) -> None:
    names = set(known)
    removed = {variable(option): problem for option, problem in REMOVED_OPTIONS.items()}
    for name in sorted(present):
        if name.startswith(PREFIX) and name not in names:
            hint = suggestion(name, names) or "; --help lists the options"
            problem = removed.get(name) or f"there is no such option{hint}"
            print(f"{program_name()}: warning: {name}: {problem}", file=sys.stderr)


def without_options(environment: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    """Return ``environment`` without the variables ``names``, for a command that may start another simulator."""
    dropped = set(names)
    return {name: text for name, text in environment.items() if name not in dropped}


def _is_of_another(action: argparse.Action, text: str) -> bool:
    """Return True if a command inside ``exec`` starts a simulator: the URL is that of the simulator of ``exec``."""
    return "://" in text and action.type is not None


def _value(action: argparse.Action, text: str) -> Any:
    """Return the value of an option, as argparse would make it of an argument; raise ArgumentTypeError if it cannot."""
    if action.nargs == 0:
        if text.lower() not in _TRUE + _FALSE:
            raise argparse.ArgumentTypeError(f"{text!r} is not true or false; write 1 or 0")
        return action.const if text.lower() in _TRUE else action.default
    if isinstance(action, argparse._AppendAction) or action.nargs in ("+", "*"):
        return [_one(action, each) for each in _split(text)]
    return _one(action, text)


def _split(text: str) -> list[str]:
    """Return the values of a repeatable option: its lines, or else what stands between commas before NAME=."""
    parts = text.splitlines() if "\n" in text else _NEXT_VALUE.split(text)
    return [each.strip() for each in parts if each.strip()]


def _one(action: argparse.Action, text: str) -> Any:
    try:
        value = action.type(text) if callable(action.type) else text
    except (ValueError, TypeError):
        kind = getattr(action.type, "__name__", "value")
        raise argparse.ArgumentTypeError(f"{text!r} is not a valid {kind}") from None
    if action.choices is not None and value not in action.choices:
        choices = [str(each) for each in action.choices]
        raise argparse.ArgumentTypeError(f"{text!r} is not one of {', '.join(choices)}{suggestion(text, choices)}")
    return value
