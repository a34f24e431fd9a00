# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""The options of a hook: described once, read from a command line or from a JSON object."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from ready_hooks.core.errors import UsageError
from ready_hooks.core.options import (
    Parser,
    as_list,
    check_key,
    parse_boolean,
    parse_choice,
    parse_integer,
    parse_seconds,
)

# a longer time would exceed the numbers that the waiting functions of the system accept
seconds: Parser = partial(parse_seconds, most=366 * 86400)
port: Parser = partial(parse_integer, least=1, most=65535)
# how a command line has them
_BOOLEANS = {"true": True, "yes": True, "false": False, "no": False}


def text(value: object) -> str:
    """Return a text that is not empty. Raises ValueError."""
    if isinstance(value, bool) or not isinstance(value, (str, int)) or not str(value).strip() or "\0" in str(value):
        raise ValueError(f"expected a text, not {value!r}")
    try:
        os.fsencode(str(value))
    except UnicodeEncodeError:
        raise ValueError(f"expected a text without half characters of UTF-16, not {value!r}") from None
    return str(value)


def path(value: object) -> str:
    """Return an absolute path. Raises ValueError."""
    if not text(value).startswith("/"):
        raise ValueError(f"expected an absolute path, not {value!r}")
    return str(value)


def boolean(value: object) -> bool:
    """Return a truth value, also of the words of a command line. Raises ValueError."""
    return parse_boolean(_BOOLEANS.get(value, value) if isinstance(value, str) else value)


def one_of(*words: str) -> Parser:
    """Return a parser for one of these words."""
    return partial(parse_choice, known=words)


def command(value: object) -> tuple[str, ...]:
    """Return the arguments of a program: a list of texts, or one text for the shell. Raises ValueError."""
    if isinstance(value, (list, tuple)):
        if not value:
            raise ValueError("expected a command, not an empty list")
        return tuple(text(word) for word in value)
    return ("/bin/sh", "-c", text(value))


class Option(NamedTuple):
    """One option.

    Attributes:
        name: as in a JSON object, with underscores; on the command line with dashes.
        parse: returns the value for the hook; raises ValueError.
        help: one sentence, without the default.
        default: value for the hook where the option is missing; None for none.
        many: whether it is a list; on the command line it is repeated. A single value is a list of
            one. The value for the hook is a tuple; without the option it is empty.
    """

    name: str
    parse: Parser
    help: str
    default: Any = None
    required: bool = False
    many: bool = False

    @property
    def flag(self) -> str:
        """The option on the command line."""
        return "--" + self.name.replace("_", "-")

    def read(self, value: object) -> Any:
        """Return the value for the hook. Raises UsageError."""
        try:
            if not self.many:
                return self.parse(value)
            return tuple(map(self.parse, as_list(value)))
        except ValueError as error:
            raise UsageError(self.name, str(error)) from None


Values = Mapping[str, Any]


def from_mapping(options: Sequence[Option], given: object) -> Values:
    """Return the values for the hook, with defaults; null, as from JSON, is the same as a missing option.

    Raises:
        UsageError: an option is unknown, missing or invalid.
    """
    if not isinstance(given, Mapping):
        raise UsageError("options", f"expected a mapping, not {given!r}")
    known = {option.name: option for option in options}
    for name in given:
        try:
            check_key(name, tuple(known))
        except ValueError as error:
            raise UsageError(str(name), str(error)) from None
    values = {}
    for option in options:
        value = given.get(option.name)
        if value is not None:
            values[option.name] = option.read(value)
        else:
            values[option.name] = () if option.many else option.default
        if option.required and values[option.name] in (None, ()):
            raise UsageError(option.name, "it is required", f"set it: {option.help}")
    return values


def from_json(options: Sequence[Option], given: str) -> Values:
    """Return the values of a JSON object, see `from_mapping`. Raises UsageError."""
    try:
        return from_mapping(options, json.loads(given))
    except ValueError as error:
        raise UsageError("--json", f"not a JSON object: {error}") from None


def add_flags(parser: argparse.ArgumentParser, options: Sequence[Option]) -> None:
    """Add the options to a command line; `from_namespace` reads them."""
    for option in options:
        words = option.help.replace("%", "%%")
        if option.default not in (None, False):
            words += (
                f" (default: {option.default:g})"
                if isinstance(option.default, float)
                else f" (default: {option.default})"
            )
        if option.parse is boolean:
            parser.add_argument(option.flag, dest=option.name, nargs="?", const=True, help=words, metavar="BOOL")
        else:
            parser.add_argument(
                option.flag,
                dest=option.name,
                action="append" if option.many else "store",
                help=words + (" (may be repeated)" if option.many else ""),
                metavar=option.name.upper(),
            )


def from_namespace(options: Sequence[Option], parsed: argparse.Namespace) -> Values | None:
    """Return the values of a command line; None if it has none of the options. Raises UsageError."""
    given = {
        option.name: getattr(parsed, option.name) for option in options if getattr(parsed, option.name) is not None
    }
    return from_mapping(options, given) if given else None
