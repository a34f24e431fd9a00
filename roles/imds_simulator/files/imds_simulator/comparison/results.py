# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The result of a comparison, as rows, as a table and as JSON data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from ..recording.reader import Recording
from .evidence import Evidence
from .registry import order, statements
from .unsettled import unsettled
from .verdict import Outcome

# numbers of lines that the table shows
_SHOWN = 3


class Row(NamedTuple):
    """A statement with its verdict."""

    number: str
    confidence: str
    summary: str
    outcome: Outcome
    lines: tuple[int, ...]
    remark: str


def compare(recording: Recording, is_complete: bool) -> list[Row]:
    """Return a row for each statement that a recording can settle.

    Args:
        recording: the recording.
        is_complete: add the statements that no recording of one VM can settle.
    """
    evidence = Evidence(recording)
    rows = []
    for each in statements():
        verdict = each.check(evidence)
        lines = tuple(sorted(set(verdict.lines)))
        rows.append(Row(each.number, each.confidence, each.summary, verdict.outcome, lines, verdict.remark))
    if is_complete:
        rows += [Row(each.number, each.confidence, "", Outcome.OPEN, (), each.reason) for each in unsettled()]
    return sorted(rows, key=lambda row: order(row.number))


def counts(rows: Sequence[Row]) -> Counter[Outcome]:
    """Return the number of rows with each outcome."""
    return Counter(row.outcome for row in rows)


def table(rows: Sequence[Row]) -> str:
    """Return the rows as a text table."""
    cells = [("statement", "confidence", "verdict", "lines", "about")]
    for row in rows:
        about = f"{row.summary}: {row.remark}" if row.summary and row.remark else row.summary or row.remark
        cells.append((row.number, row.confidence, row.outcome.value, _lines(row.lines), _printable(about)))
    widths = [max(len(line[column]) for line in cells) for column in range(4)]
    return "\n".join("  ".join([*map(str.ljust, line[:4], widths), line[4]]).rstrip() for line in cells)


def data(recording: Recording, rows: Sequence[Row]) -> dict[str, Any]:
    """Return the comparison as JSON data."""
    found = counts(rows)
    return {
        "file": recording.name,
        "counts": {outcome.value: found[outcome] for outcome in Outcome},
        "problems": list(recording.problems),
        "statements": [
            {
                "number": row.number,
                "confidence": row.confidence,
                "summary": row.summary,
                "verdict": row.outcome.value,
                "lines": list(row.lines),
                "remark": row.remark,
            }
            for row in rows
        ],
    }


def _lines(lines: Sequence[int]) -> str:
    shown = ",".join(map(str, lines[:_SHOWN]))
    return f"{shown}+{len(lines) - _SHOWN}" if len(lines) > _SHOWN else shown


def _printable(text: str) -> str:
    """Return the text without control characters: remarks have values of the recording."""
    return "".join(each if each.isprintable() else "?" for each in text)
