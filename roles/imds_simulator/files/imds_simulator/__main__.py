# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""``python3 -m imds_simulator``: serve, or do one of the other things that the command line offers."""
from __future__ import annotations

import json
import sys
from typing import Optional, Sequence

from . import fault_kinds, scenario
from .knobs import Knobs, describe_knobs, knob_fields
from .options import serve_parser
from .schema_check import schema
from .serving import run
from .verbs import VERBS, speak


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Run with ``arguments`` (default: the command line's) and return the exit code."""
    argv = list(sys.argv[1:] if arguments is None else arguments)
    if argv and argv[0] in VERBS:
        return speak(argv)
    if argv and argv[0] == "exec":
        return _exec(argv[1:])
    options = serve_parser().parse_args(argv)
    if options.list_scenarios:
        return _print_table([(name, scenario.lesson(name)) for name in scenario.names()])
    if options.list_faults:
        return _print_table([(name, kind.meaning) for name, kind in fault_kinds.KINDS.items()])
    if options.list_knobs:
        values = describe_knobs(Knobs())
        return _print_table([("%s=%s" % (name, json.dumps(values[name])), each.metadata["meaning"])
                             for name, each in knob_fields().items()])
    if options.schema:
        print(json.dumps(schema(), indent=2))
        return 0
    if options.check is not None:
        return _check(options.check)
    return run(options, ())


def _exec(argv: list[str]) -> int:
    parser = serve_parser("imds_simulator exec")
    if "--" not in argv:
        parser.parse_args(argv)
        parser.error("exec needs a command: exec [OPTIONS] -- COMMAND ARGUMENTS...")
    cut = argv.index("--")
    options = parser.parse_args(argv[:cut])
    if not argv[cut + 1:]:
        parser.error("there is no command behind --")
    return run(options, argv[cut + 1:])


def _check(name_or_file: str) -> int:
    try:
        found = scenario.load(name_or_file)
    except scenario.ScenarioError as error:
        print(error, file=sys.stderr)
        return 2
    vms = sum(len(group.vms) for group in found.groups)
    print("%s: good (%d VMs, %d events, %d faults)" % (name_or_file, vms, len(found.events), len(found.faults)))
    return 0


def _print_table(rows: Sequence[tuple[str, str]]) -> int:
    width = max(len(name) for name, _text in rows)
    for name, text in rows:
        print("%s  %s" % (name.ljust(width), text))
    return 0


if __name__ == "__main__":
    sys.exit(main())
