# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""``python3 -m imds_simulator``: serve, or do one of the other things that the command line offers."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from .cli.control_commands import VERBS, run_control_command
from .cli.options import serve_parser
from .suggestions import suggestion


def main(arguments: Sequence[str] | None = None) -> int:
    """Run with ``arguments`` (default: the command line's) and return the exit code."""
    argv = list(sys.argv[1:] if arguments is None else arguments)
    # a verb is one HTTP request: it does not wait for the import of the server's libraries
    if argv and argv[0] in VERBS:
        return run_control_command(argv)
    if argv and argv[0] == "exec":
        return _exec(argv[1:])
    if argv and not argv[0].startswith("-"):
        hint = suggestion(argv[0], [*VERBS, "exec"]) or "; --help lists them"
        return _complain(f"there is no verb {argv[0]}{hint}")
    return _serve_or_tell(serve_parser().parse_args(argv))


def _serve_or_tell(options: argparse.Namespace) -> int:
    try:
        from .cli import print_commands
        from .cli.serve_command import run
    except ImportError as error:
        return _lacks(error)
    if options.list_scenarios:
        return print_commands.scenarios()
    if options.list_faults:
        return print_commands.faults()
    if options.list_knobs:
        return print_commands.knobs()
    if options.schema:
        return print_commands.scenario_schema()
    if options.check is not None:
        return print_commands.check(options.check)
    return run(options, ())


def _exec(argv: list[str]) -> int:
    try:
        from .cli.serve_command import run
    except ImportError as error:
        return _lacks(error)
    parser = serve_parser("imds_simulator exec")
    if "--" not in argv:
        parser.parse_args(argv)
        parser.error("exec needs a command: exec [OPTIONS] -- COMMAND ARGUMENTS...")
    cut = argv.index("--")
    options = parser.parse_args(argv[:cut])
    if not argv[cut + 1 :]:
        parser.error("there is no command behind --")
    return run(options, argv[cut + 1 :])


def _lacks(error: ImportError) -> int:
    """Serving takes libraries that may not be there, verbs do not."""
    return _complain(f"cannot serve with {sys.executable}: {error}; it needs aiohttp, PyYAML and jsonschema")


def _complain(text: str) -> int:
    print(f"imds_simulator: {text}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
