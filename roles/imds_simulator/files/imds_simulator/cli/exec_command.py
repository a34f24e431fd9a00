# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The verb ``exec``: runs a command while a simulator serves."""

from __future__ import annotations

from collections.abc import Sequence

from .environment import add_environment
from .options import exec_parser
from .serve_command import run


def main(arguments: Sequence[str]) -> int:
    """Run the verb with ``arguments`` and return the exit code of the command."""
    arguments = list(arguments)
    parser = exec_parser()
    if "--" not in arguments:
        parser.parse_args(arguments)
        parser.error("exec needs a command: exec [OPTIONS] -- COMMAND ARGUMENTS...")
    separator = arguments.index("--")
    add_environment(parser, arguments[:separator])
    options = parser.parse_args(arguments[:separator])
    if not arguments[separator + 1 :]:
        parser.error("exec: there is no command after --")
    return run(options, arguments[separator + 1 :])
