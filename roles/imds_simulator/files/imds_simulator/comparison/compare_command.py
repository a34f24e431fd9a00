# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The verb ``compare``: a recording against the statements of docs/reference/scheduled-events.md."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from ..cli.environment import parse_arguments
from ..cli.program import program_name
from ..recording.reader import Unusable, read
from .results import compare, counts, data, table
from .verdict import Outcome


def main(arguments: Sequence[str]) -> int:
    """Run the verb with ``arguments`` and return the exit code.

    Exit codes: 0, 1 if the recording contradicts a statement, 2 if it cannot be used.
    """
    options = parse_arguments(_parser(), arguments, "compare")
    try:
        recording = read(options.file)
    except Unusable as error:
        print(f"{program_name()}: {error}", file=sys.stderr)
        return 2
    for problem in recording.problems:
        print(f"compare: {problem}", file=sys.stderr)
    if not recording.answers:
        print(f"{program_name()}: {options.file}: there are no answers; record for longer", file=sys.stderr)
        return 2
    rows = compare(recording, options.all)
    found = counts(rows)
    if options.json:
        print(json.dumps(data(recording, rows), indent=2))
    else:
        print(table(rows))
        print(", ".join(f"{outcome.value}: {found[outcome]}" for outcome in Outcome))
    return 1 if found[Outcome.CONTRADICTS] else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"{program_name()} compare",
        description="Compare a recording with the statements of docs/reference/scheduled-events.md. Exit code 1: the "
        "recording contradicts a statement.",
    )
    parser.add_argument("file", metavar="FILE", type=Path, help="a recording")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--all", action="store_true", help="add the statements that no recording can settle")
    return parser
