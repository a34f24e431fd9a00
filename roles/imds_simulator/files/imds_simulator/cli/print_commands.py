# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Options that print and exit: --list-*, --schema, --check. None needs the libraries of the server."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from types import SimpleNamespace

from ..faults.kinds import KINDS
from ..keys import keys_of
from ..scenario.files import ScenarioError, load_with_warnings, schema, shipped_names, summary
from ..scenario.knobs import Knobs, describe_knobs

_WIDEST = 40


def print_chosen(options: SimpleNamespace) -> int | None:
    """Print what ``options`` ask for and return the exit code, or None if they ask for nothing."""
    if options.check is not None:
        return _check(options.check)
    if options.schema:
        print(json.dumps(schema(), indent=2))
    elif options.list_scenarios:
        _print_table([(name, summary(name)) for name in shipped_names()])
    elif options.list_faults:
        _print_table([(name, kind.meaning) for name, kind in KINDS.items()])
    elif options.list_knobs:
        values = describe_knobs(Knobs())
        _print_table([(f"{name}={json.dumps(values[name])}", each.meaning) for name, each in keys_of(Knobs).items()])
    else:
        return None
    return 0


def _check(name_or_file: str) -> int:
    """Check a scenario file: print a summary, or one line for each problem on stderr.

    Warnings are on stderr, too; with warnings alone the exit code is 0.
    """
    try:
        scenario, warnings = load_with_warnings(name_or_file)
    except ScenarioError as error:
        print(error, file=sys.stderr)
        return 2
    for line in warnings:
        print(line, file=sys.stderr)
    vms = sum(len(group.vms) for group in scenario.groups)
    print(f"{name_or_file}: good ({vms} VMs, {len(scenario.events)} events, {len(scenario.faults)} faults)")
    return 0


def _print_table(rows: Sequence[tuple[str, str]]) -> None:
    # a name that is longer has its text after it
    width = max(len(name) for name, _text in rows if len(name) <= _WIDEST)
    for name, text in rows:
        print(f"{name.ljust(width)}  {text}")
