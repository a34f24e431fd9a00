# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Every citation of docs/reference/scheduled-events.md in the repository leads to a number of that document."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.repository import REPOSITORY
from tools.repository.citations import cited_in, numbers, rows, scenarios_in
from tools.repository.collection_tree import tracked_or_new

REFERENCE = Path("docs/reference/scheduled-events.md")
KNOWN = numbers((REPOSITORY / REFERENCE).read_text(encoding="utf-8"))
TEXTS = {".cfg", ".j2", ".json", ".md", ".py", ".rst", ".sh", ".sls", ".toml", ".yaml", ".yml"}
# this file has citations that must not be found, as examples
FILES = [
    name
    for name in sorted(tracked_or_new(REPOSITORY))
    if name.suffix in TEXTS
    and not (REPOSITORY / name).is_symlink()
    and name != Path("tests/unit/project/test_citations.py")
]
# forms that named a document outside the repository
OLD_FORM = re.compile(r"\bspec(?:ification)? \d|\bspec's\b|\b[Ss]ections? \d+\.\d|\N{SECTION SIGN}")


def text_of(name: Path) -> str:
    return (REPOSITORY / name).read_text(encoding="utf-8")


def unknown(text: str) -> set[str]:
    return (cited_in(text) | scenarios_in(text)) - KNOWN


def test_every_citation_leads_to_a_number_of_the_reference() -> None:
    assert {str(name): found for name in FILES if (found := unknown(text_of(name)))} == {}


def test_no_citation_has_the_old_form() -> None:
    assert {str(name): found[0] for name in FILES if (found := OLD_FORM.search(text_of(name)))} == {}


def test_every_number_in_the_tables_of_the_simulator_is_in_the_reference() -> None:
    text = text_of(Path("docs/simulator.md"))
    listed = re.findall(r"^\| (\d(?:\.\d+)+) \|", text, re.MULTILINE) + re.findall(
        r"^\| `\w+` \| [^|]+ \| (\d[^|]*) \|", text, re.MULTILINE
    )
    assert len(listed) > 100 and set(listed) - KNOWN == set()


def test_every_row_of_the_reference_has_the_anchor_of_its_number_and_no_number_comes_twice() -> None:
    found = rows(text_of(REFERENCE))
    assert len(found) > 200 and len(dict(found)) == len(found)
    assert [
        (anchor, number) for anchor, number in found if anchor != re.sub(r"[. (]+", "-", number.lower().rstrip(")"))
    ] == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("# reference 1.6: asking again", {"1.6"}),
        ("(docs/reference/scheduled-events.md 1.3, 2.5.7 and 8.4; T47)", {"1.3", "2.5.7", "8.4", "T47"}),
        ("the rules of reference 1.1 to 1.3, None", {"1.1", "1.3"}),
        ("follows docs/reference/scheduled-events.md\n# 2.1 (4a).", {"2.1 (4a)"}),
        ("def test_t32_t34_the_incarnation() -> None:", {"T32", "T34"}),
        ("2026-01-01T10:00:00Z, a reference to 1.6", set()),
    ],
)
def test_the_forms_of_a_citation_are_found(text: str, found: set[str]) -> None:
    assert cited_in(text) | scenarios_in(text) == found


def test_a_citation_of_a_missing_statement_is_found() -> None:
    assert unknown("(reference 1.8.5, 1.8.99; T62, T99)") == {"1.8.99", "T99"}


@pytest.mark.parametrize(
    "text", ["(spec 1.8.5)", "the spec's default", "Section 8.4: approvals", "see \N{SECTION SIGN}1"]
)
def test_the_old_forms_are_found(text: str) -> None:
    assert OLD_FORM.search(text)
