# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""docs/README.md leads to every page: each path begins with a page of docs/start, the tables have all others."""

from __future__ import annotations

import re

from support.repository import REPOSITORY
from tools.repository.markdown import links

DOCS = REPOSITORY / "docs"
PAGE = (DOCS / "README.md").read_text(encoding="utf-8")
PATHS = 7
# docs/decisions/README.md lists them
DECISION = re.compile(r"decisions/\d{4}-")


def section(heading: str) -> str:
    return PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]


def test_each_path_begins_with_a_start_page_of_its_own() -> None:
    rows = [row.split(" | ") for row in section("Start").splitlines() if row.startswith("| ")][2:]
    first = [target for row in rows for target in links(row[1])]
    assert len(rows) == len(set(first)) == PATHS
    assert all(target.startswith("start/") for target in first)
    assert all(links(cell) for row in rows for cell in row[1:])


def test_first_page_shows_a_time_line() -> None:
    assert [target for target in links(PAGE) if target.startswith("images/time-line-")]


def test_first_page_links_every_page() -> None:
    pages = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")} - {"README.md"}
    linked = {target.partition("#")[0] for target in links(PAGE)}
    assert {page for page in pages if not DECISION.match(page)} - linked == set()


def test_tables_link_no_page_twice() -> None:
    for heading in ("How-to", "Reference", "Explanation"):
        found = links(section(heading))
        assert [target for target in found if found.count(target) > 1] == []
