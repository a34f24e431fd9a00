# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The statements that compare knows are those of the reference."""

from __future__ import annotations

import re
from pathlib import Path

from imds_simulator.comparison.registry import statements
from imds_simulator.comparison.unsettled import unsettled
from support.simulator.reference import numbers, rows

REFERENCE = (Path(__file__).resolve().parents[4] / "docs" / "reference" / "scheduled-events.md").read_text(
    encoding="utf-8"
)
# sections whose tables have no numbers in their rows
SECTIONS = {"2.4", "3.2"}


def marks() -> dict[str, str]:
    """Return the confidence of each statement of sections 1 to 5."""
    found: dict[str, str] = {}
    column = 0
    for line in REFERENCE.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if "confidence" in cells:
            column = cells.index("confidence")
        for _anchor, number in rows(line):
            if re.match(r"[1-5]\.", number):
                found[number] = cells[column]
    return found


def test_every_statement_has_a_check_or_a_reason() -> None:
    known = [each.number for each in statements()] + [each.number for each in unsettled()]
    assert len(known) == len(set(known))
    assert set(known) - SECTIONS == set(marks())
    assert set(known) <= numbers(REFERENCE)


def test_confidence_is_that_of_the_reference() -> None:
    known = {each.number: each.confidence for each in statements()}
    known |= {each.number: each.confidence for each in unsettled()}
    assert {number: mark for number, mark in known.items() if number not in SECTIONS} == marks()


def test_confidence_of_a_section_is_in_its_table() -> None:
    for each in statements():
        if each.number in SECTIONS:
            section = REFERENCE.split(f"### {each.number} ")[1].split("\n<a id")[0]
            assert f"| {each.confidence} |" in section


def test_every_check_has_a_summary_of_one_line() -> None:
    assert [each.number for each in statements() if not 10 < len(each.summary) < 120] == []
