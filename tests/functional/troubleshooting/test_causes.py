# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The tables of docs/troubleshooting.md lead from a symptom, and from an output, to each section."""

from __future__ import annotations

import re

import pytest

from support.repository import REPOSITORY
from support.troubleshooting.page import DOCUMENT
from tools.repository.markdown import FENCED

pytestmark = pytest.mark.all

TEXT = (REPOSITORY / DOCUMENT).read_text(encoding="utf-8")
INTRODUCTION = TEXT.partition("\n## ")[0]
_TARGET = re.compile(r"\]\(#([\w-]+)\)")
_QUOTED = re.compile(r"`([^`]+)`")


def section(heading: str) -> str:
    """Return the text below a heading of any level, without its sub-sections and without the heading."""
    _before, _heading, after = TEXT.partition(f"\n{heading}\n")
    return re.split(r"^##+ ", after, maxsplit=1, flags=re.MULTILINE)[0]


def headings(level: int) -> list[str]:
    """Return the headings of a level, without their marks."""
    return re.findall(rf"^{'#' * level} (.+)$", FENCED.sub("", TEXT), re.MULTILINE)


def anchor(heading: str) -> str:
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def quoted_outputs() -> list[tuple[str, str]]:
    """Return (output, anchor of its section) of each row in the tables of causes; the last cell has the section."""
    rows = [row for heading in headings(3) for row in section(f"### {heading}").splitlines() if row.startswith("| ")]
    cells = [[cell.strip() for cell in row.strip("|").split(" | ")] for row in rows]
    return [
        (output, _TARGET.findall(row[-1])[0])
        for row in cells
        if _TARGET.search(row[-1])
        for output in _QUOTED.findall(row[-2])
    ]


def test_first_table_leads_to_each_section() -> None:
    assert {anchor(heading) for heading in headings(3)} <= set(_TARGET.findall(INTRODUCTION))


def test_tables_of_causes_lead_to_each_cause() -> None:
    led_to = {target for heading in headings(3) for target in _TARGET.findall(section(f"### {heading}"))}
    assert {anchor(heading) for heading in headings(4)} <= led_to


@pytest.mark.parametrize(("output", "target"), quoted_outputs())
def test_table_of_causes_quotes_an_output_of_the_section(output: str, target: str) -> None:
    found = [heading for level in (3, 4) for heading in headings(level) if anchor(heading) == target]
    (heading,) = found
    level = "###" if heading in headings(3) else "####"
    below = section(f"{level} {heading}")
    if level == "###":
        below = TEXT.partition(f"\n### {heading}\n")[2].partition("\n### ")[0]
    assert output in below
