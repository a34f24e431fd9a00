# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Commands of click whose options are also environment variables, and whose errors name the next step.

An option of serving and of ``exec`` is the variable ``IMDS_SIMULATOR_OPTION``, also ``--control`` and
``--control-token`` of every verb; any other option of a verb is ``IMDS_SIMULATOR_VERB_OPTION``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType, SimpleNamespace
from typing import Any, Callable

import click

from ..keys import Problems, Type
from ..suggestions import suggestion
from .output import fail, print_problem, program_name

PREFIX = "IMDS_SIMULATOR"
CONTROL = PREFIX + "_CONTROL"
CONTROL_TOKEN = PREFIX + "_CONTROL_TOKEN"
ENDPOINT = PREFIX + "_ENDPOINT"
ENDPOINTS = PREFIX + "_ENDPOINTS"

# values such as notice_overrides=Freeze:5m,Reboot:1m contain commas
_NEXT_VALUE = re.compile(r",(?=[^,=\s]+=)")


class Parsed(click.ParamType):  # type: ignore[type-arg]  # older versions of click do not have the argument
    """The type of an option whose text ``parse`` converts; the text of its ValueError is the message."""

    name = "value"

    def __init__(self, parse: Callable[[str], Any]) -> None:
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the value that a text means; a default is a value already."""
        if not isinstance(value, str):
            return value
        try:
            return self._parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)

    def split_envvar_value(self, rv: str) -> Sequence[str]:
        """Return the values of a repeatable option: the lines, or else what stands between commas before NAME=."""
        parts = rv.splitlines() if "\n" in rv else _NEXT_VALUE.split(rv)
        return [each.strip() for each in parts if each.strip()]


def typed(type_: Type) -> Callable[[str], Any]:
    """Return the function that makes a value of the type of a key from a text."""

    def parse_value(text: str) -> Any:
        problems = Problems()
        value = type_.read(type_.from_text(text), (), problems)
        for _path, problem in problems.found:
            raise ValueError(problem)
        return value

    return parse_value


class Option(click.Option):
    """An option that keeps in ``Context.meta`` the name of the variable that it has its value from."""

    def variable(self, prefix: str | None) -> str:
        """Return the name of the variable."""
        return str(self.envvar or f"{prefix}_{str(self.name).upper()}")

    def resolve_envvar_value(self, ctx: click.Context) -> str | None:
        """Return the text of the variable, or None if it is absent or empty."""
        text = super().resolve_envvar_value(ctx) or None
        if text is not None:
            ctx.meta.setdefault(PREFIX, {})[self.name] = self.variable(ctx.auto_envvar_prefix)
        return text


def option(
    name: str,
    metavar: str,
    meaning: str,
    parse: Callable[[str], Any] = str,
    cls: type[Option] = Option,
    **more: Any,
) -> Option:
    """Return an option with a value that ``parse`` makes of a text."""
    words = ["--" + name, name.replace("-", "_")]
    return cls(words, metavar=metavar, help=meaning, **{"type": Parsed(parse), **more})


def flag(name: str, meaning: str, **more: Any) -> Option:
    """Return an option without a value."""
    return Option(["--" + name], is_flag=True, help=meaning, **more)


class Command(click.Command):
    """A command whose help begins with its purpose.

    ``text`` is the purpose, in which a line that is indented is not wrapped. ``prefix`` is that of the variables;
    empty: the verb's. ``remedies`` is option that the command does not have -> problem and remedy.
    """

    def __init__(
        self,
        name: str,
        text: str,
        params: Sequence[click.Parameter],
        *,
        prefix: str = "",
        remedies: Mapping[str, str] = MappingProxyType({}),
        **more: Any,
    ) -> None:
        self.remedies = remedies
        self.prefix = prefix or f"{PREFIX}_{name.upper()}"
        settings = {"auto_envvar_prefix": self.prefix, "help_option_names": ["-h", "--help"], "max_content_width": 100}
        super().__init__(name, context_settings=settings, help=text, params=list(params), **more)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read ``args``; an option with a value that is given twice is an error, because click ignores the first."""
        given = list(args)
        rest = super().parse_args(ctx, args)
        order = self.make_parser(ctx).parse_args(given)[2]
        for each in order:
            if isinstance(each, Option) and order.count(each) > 1 and not (each.multiple or each.is_flag):
                raise click.BadParameter(f"it is given twice; write {each.opts[0]} {each.metavar} once", ctx, each)
        return rest

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the help, in this order."""
        self.format_help_text(ctx, formatter)
        formatter.write_paragraph()
        self.format_usage(ctx, formatter)
        self.format_options(ctx, formatter)
        self.format_epilog(ctx, formatter)


def parse(command: Command, arguments: Sequence[str]) -> SimpleNamespace:
    """Return the options of ``arguments`` and of the environment; an argument has precedence.

    The attribute ``from_environment`` has the names of the variables that are used. Ends the process with exit code 2
    after a message if an argument, or the value of a variable, is invalid.
    """
    if command.prefix != PREFIX:
        warn_of_unknown_variables(command.prefix, variables(command))
    verb = "" if command.name == "serve" else f" {command.name}"
    try:
        context = command.make_context(program_name() + verb, list(arguments))
    except click.exceptions.Exit as done:
        raise SystemExit(done.exit_code) from None
    except click.UsageError as error:
        fail(_problem(error, command))
    return SimpleNamespace(**context.params, from_environment=list(context.meta.get(PREFIX, {}).values()))


def variables(command: Command) -> set[str]:
    """Return the names of the variables of ``command``."""
    return {
        each.variable(command.prefix) for each in command.params if isinstance(each, Option) and each.allow_from_autoenv
    }


def warn_of_unknown_variables(prefix: str, known: Collection[str], others: Sequence[str] = ()) -> None:
    """Print a warning on stderr for each variable with ``prefix`` that is not ``known``.

    ``others`` are longer prefixes, of variables that another command has.
    """
    for name in sorted(os.environ):
        if name.startswith(prefix + "_") and name not in known and not name.startswith(tuple(others)):
            hint = suggestion(name, known) or "; --help lists the options"
            print_problem(f"warning: {name}: there is no such option{hint}")


def _problem(error: click.UsageError, command: Command) -> str:
    if isinstance(error, click.NoSuchOption):
        name = error.option_name
        options = [each for each in command.params if isinstance(each, Option)]
        for each in command.params:
            if each not in options and name == f"--{each.name}":
                return f"{name}: there is no such option; write {each.human_readable_name} without {name}"
        known = [each.opts[0].lstrip("-") for each in options]
        # without the hyphens, which would make all options similar
        near = suggestion(name.lstrip("-"), known).replace("mean ", "mean --") or "; --help lists the options"
        return f"{name}: {command.remedies.get(name) or 'there is no such option' + near}"
    if not isinstance(error, click.BadParameter) or error.param is None or error.ctx is None:
        return f"{error.format_message().rstrip('.')}; --help lists the options"
    param = error.param
    subject = param.opts[0] if isinstance(param, Option) else param.human_readable_name
    subject = error.ctx.meta.get(PREFIX, {}).get(param.name, subject)
    # a parameter that is missing has no message
    return f"{subject}: {(error.message or '').rstrip('.') or 'a value is missing; --help lists the options'}"
