# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Commands that print and exit: --list-*, --schema, --check. Each returns the exit code."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from ..faults.kinds import KINDS
from ..keys import keys_of
from ..scenario.files import ScenarioError, load_with_warnings, schema, shipped_names, summary
from ..scenario.knobs import Knobs, describe_knobs


def print_scenarios() -> int:
    """Print the shipped scenarios with their summaries."""
    return _table([(name, summary(name)) for name in shipped_names()])


def print_faults() -> int:
    """Print the kinds of faults with their meanings."""
    return _table([(name, kind.meaning) for name, kind in KINDS.items()])


def print_knobs() -> int:
    """Print the knobs with their defaults and meanings."""
    values = describe_knobs(Knobs())
    return _table([(f"{name}={json.dumps(values[name])}", each.meaning) for name, each in keys_of(Knobs).items()])


def print_schema() -> int:
    """Print the JSON Schema of scenario files."""
    print(json.dumps(schema(), indent=2))
    return 0


def check_scenario(name_or_file: str) -> int:
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


def _table(rows: Sequence[tuple[str, str]]) -> int:
    width = max(len(name) for name, _text in rows)
    for name, text in rows:
        print(f"{name.ljust(width)}  {text}")
    return 0
