# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The command ``python3 -m imds_simulator``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from .cli.control_commands import VERBS, run_control_command
from .cli.options import serve_parser
from .suggestions import suggestion


def main(arguments: Sequence[str] | None = None) -> int:
    """Run with ``arguments`` (default: those of the process) and return the exit code."""
    argv = list(sys.argv[1:] if arguments is None else arguments)
    # a verb is one HTTP request and does not need the libraries of the server
    if argv and argv[0] in VERBS:
        return run_control_command(argv)
    if argv and argv[0] == "exec":
        return _exec(argv[1:])
    if argv and not argv[0].startswith("-"):
        hint = suggestion(argv[0], [*VERBS, "exec"]) or "; --help lists them"
        return _print_error(f"there is no verb {argv[0]}{hint}")
    return _serve_or_print(serve_parser().parse_args(argv))


def _serve_or_print(options: argparse.Namespace) -> int:
    try:
        from .cli import print_commands
        from .cli.serve_command import run
    except ImportError as error:
        return _missing_library(error)
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
    return run(options, ())


def _exec(argv: list[str]) -> int:
    try:
        from .cli.serve_command import run
    except ImportError as error:
        return _missing_library(error)
    parser = serve_parser("imds_simulator exec")
    if "--" not in argv:
        parser.parse_args(argv)
        parser.error("exec needs a command: exec [OPTIONS] -- COMMAND ARGUMENTS...")
    separator = argv.index("--")
    options = parser.parse_args(argv[:separator])
    if not argv[separator + 1 :]:
        parser.error("exec: there is no command after --")
    return run(options, argv[separator + 1 :])


def _missing_library(error: ImportError) -> int:
    """Report a library that serving needs, and verbs do not need."""
    return _print_error(f"cannot serve with {sys.executable}: {error}; install aiohttp, PyYAML and jsonschema")


def _print_error(text: str) -> int:
    print(f"imds_simulator: {text}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
