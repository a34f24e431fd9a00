# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""What the command line can tell without serving: lists, the schema, a verdict on a file. Each returns an exit code."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from ..scenario.fault_kinds import KINDS
from ..scenario.files import ScenarioError, load, shipped_names, summary
from ..scenario.knobs import Knobs, describe_knobs, knob_fields
from ..scenario.schema_check import schema


def scenarios() -> int:
    return _table([(name, summary(name)) for name in shipped_names()])


def faults() -> int:
    return _table([(name, kind.meaning) for name, kind in KINDS.items()])


def knobs() -> int:
    values = describe_knobs(Knobs())
    return _table(
        [(f"{name}={json.dumps(values[name])}", each.metadata["meaning"]) for name, each in knob_fields().items()]
    )


def scenario_schema() -> int:
    print(json.dumps(schema(), indent=2))
    return 0


def check(name_or_file: str) -> int:
    """Whether a scenario file is good; every problem on a line of its own."""
    try:
        found = load(name_or_file)
    except ScenarioError as error:
        print(error, file=sys.stderr)
        return 2
    vms = sum(len(group.vms) for group in found.groups)
    print(f"{name_or_file}: good ({vms} VMs, {len(found.events)} events, {len(found.faults)} faults)")
    return 0


def _table(rows: Sequence[tuple[str, str]]) -> int:
    width = max(len(name) for name, _text in rows)
    for name, text in rows:
        print(f"{name.ljust(width)}  {text}")
    return 0
