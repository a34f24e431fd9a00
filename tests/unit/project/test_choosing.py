# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Each figure of docs/choosing.md is in the section of the page that it names as its source."""

from __future__ import annotations

import re

import pytest

from support.daemon.documents import rows
from support.repository import REPOSITORY

DOCS = REPOSITORY / "docs"
PAGE = (DOCS / "choosing.md").read_text(encoding="utf-8")
NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?")
LINK = re.compile(r"\]\(([\w/.-]+\.md)#([\w-]+)\)")
# columns with figures, by the heading of their table
FIGURES = {"Delay from the announcement to the preparation": (1,), "Cost": (1, 2)}
ROWS = [(heading, cells) for heading in FIGURES for cells in rows(PAGE, heading)]


def slug(heading: str) -> str:
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def linked_section(page: str, anchor: str) -> str:
    """Return the text below the heading of a page that has this anchor."""
    parts = re.split(r"^#+ (.+)$", (DOCS / page).read_text(encoding="utf-8"), flags=re.MULTILINE)
    found = [text for heading, text in zip(parts[1::2], parts[2::2], strict=True) if slug(heading) == anchor]
    assert len(found) == 1, f"{page}#{anchor}"
    return found[0]


def numbers(text: str) -> set[str]:
    """Return the numbers of a text, without thousands separators; no part of a link."""
    return {number.replace(",", "") for number in NUMBER.findall(re.sub(r"\]\([^)]*\)", "]", text))}


@pytest.mark.parametrize(("heading", "cells"), ROWS, ids=[cells[0] for _heading, cells in ROWS])
def test_figures_of_a_row_are_those_of_its_source(heading: str, cells: list[str]) -> None:
    (link,) = LINK.findall(cells[-1])
    figures = {number for column in FIGURES[heading] for number in numbers(cells[column])}
    assert figures and figures <= numbers(linked_section(*link))


def test_figures_of_the_demonstration_are_those_of_its_page() -> None:
    (sentence,) = re.findall(r"\[The demonstration\]\(zero-loss\.md\)(.*?ready hooks\.)", PAGE, re.DOTALL)
    assert len(numbers(sentence)) == 5
    assert numbers(sentence) <= numbers((DOCS / "zero-loss.md").read_text(encoding="utf-8"))


def test_notices_are_those_of_the_reference() -> None:
    (sentence,) = re.findall(r"\[Azure's notice\]\(([^)]+)\) is (.*?)\.", PAGE, re.DOTALL)
    least = (DOCS / "reference" / "scheduled-events.md").read_text(encoding="utf-8")
    table = least.split("### 2.4 Notice and durations")[1].split("| # | statement")[0]
    assert numbers(sentence[1]) <= numbers(table)
    (least_seen,) = re.findall(r"one Freeze had (.*?) left", " ".join(PAGE.split()))
    assert f"for one Freeze {least_seen}." in least
