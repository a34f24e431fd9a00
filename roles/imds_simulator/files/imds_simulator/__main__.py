# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The commands ``imds-simulator`` and ``python3 -m imds_simulator``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from .cli.closed_output import survive_closed_output
from .cli.commands import COMMANDS, SERVER_LIBRARIES, Command
from .cli.control_commands import VERBS, run_control_command
from .cli.environment import parse_arguments, print_unknown, variables
from .cli.options import exec_parser, serve_parser
from .cli.program import program_name
from .cli.removed import REMOVED_VERBS
from .suggestions import suggestion

_ONLY_EXEC = " without exec; write: exec [OPTIONS] -- COMMAND"
_REMEDIES = {option: _ONLY_EXEC for option in ("--imds-address", "--imds-vm", "--keep-network", "--as-root")}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run with ``arguments`` (default: those of the process) and return the exit code."""
    argv = list(sys.argv[1:] if arguments is None else arguments)
    return survive_closed_output(lambda: _dispatch(argv))


def _dispatch(argv: list[str]) -> int:
    # exec has the variables of serving, and none with its own name
    print_unknown(variables(exec_parser()), {*VERBS, *COMMANDS} - {"exec"})
    # a verb is one HTTP request and does not need the libraries of the server
    if argv and argv[0] in VERBS:
        return run_control_command(argv)
    if argv and argv[0] in COMMANDS:
        return _run(COMMANDS[argv[0]], argv[1:])
    if argv and argv[0] in REMOVED_VERBS:
        return _print_error(f"{argv[0]}: {REMOVED_VERBS[argv[0]]}")
    if argv and not argv[0].startswith("-"):
        hint = suggestion(argv[0], [*VERBS, *COMMANDS])
        return _print_error(
            f"there is no verb {argv[0]}{hint}; --help lists the verbs, --scenario FILE serves a scenario"
        )
    return _serve_or_print(parse_arguments(serve_parser(), argv, remedies=_REMEDIES))


def _run(command: Command, arguments: list[str]) -> int:
    try:
        main_of_command = command.main()
    except ImportError as error:
        return _missing_library(error, command.libraries)
    return main_of_command(arguments)


def _serve_or_print(options: argparse.Namespace) -> int:
    try:
        from .cli import print_commands
        from .cli.serve_command import run
    except ImportError as error:
        return _missing_library(error, SERVER_LIBRARIES)
    if options.list_scenarios:
        return print_commands.print_scenarios()
    if options.list_faults:
        return print_commands.print_faults()
    if options.list_knobs:
        return print_commands.print_knobs()
    if options.schema:
        return print_commands.print_schema()
    if options.check is not None:
        return print_commands.check_scenario(options.check)
    return run(options)


def _missing_library(error: ImportError, libraries: str) -> int:
    """Report a library that is not installed; verbs of the control API need none."""
    return _print_error(f"cannot run with {sys.executable}: {error}; install {libraries}")


def _print_error(text: str) -> int:
    print(f"{program_name()}: {text}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
