# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The verb ``exec``: runs a command while a simulator serves."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from .environment import add_environment, variables
from .imds_address import ImdsAddress
from .options import exec_parser
from .output import discard, print_err
from .place import CannotRun
from .program import program_name
from .run_during import Command, serve_during
from .serve_command import run
from .strict_parsing import parse_strictly


def main(arguments: Sequence[str]) -> int:
    """Run the verb with ``arguments`` and return the exit code of the command."""
    arguments = list(arguments)
    parser = exec_parser()
    if "--" not in arguments:
        parser.parse_known_args(arguments)  # for --help
        parser.error("exec needs a command after --: exec [OPTIONS] -- COMMAND ARGUMENTS...")
    separator = arguments.index("--")
    add_environment(parser, arguments[:separator])
    options = parse_strictly(parser, arguments[:separator])
    if not arguments[separator + 1 :]:
        parser.error("exec: there is no command after --")
    if not options.imds_address:
        for option in ("imds_vm", "keep_network", "as_root"):
            if getattr(options, option):
                parser.error(f"--{option.replace('_', '-')}: only with --imds-address")
    if options.keep_network and options.as_root:
        parser.error("--as-root: not with --keep-network, which creates no user namespace")
    address = ImdsAddress(options.imds_vm, options.keep_network, options.as_root) if options.imds_address else None
    command = Command(arguments[separator + 1 :], tuple(variables(parser)), address)
    log = discard if options.quiet else print_err
    try:
        return run(options, lambda settings: serve_during(settings, command, log))
    except CannotRun as error:
        print(f"{program_name()}: {error}", file=sys.stderr)
        return error.status
