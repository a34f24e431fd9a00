# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The promises to users and the tests that show them, as the pages name both.

``python -m tools.repository.promises`` prints the list of docs/promises.md of those that only `make test-all` shows.
"""

from __future__ import annotations

import ast
import functools
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

REPOSITORY = Path(__file__).resolve().parents[2]
PROMISES = "docs/promises.md"
PAGES = (PROMISES, "SECURITY.md", "docs/bounds.md", "docs/salt-security.md")
# headers of the first column of a table of promises
HEADERS = ("promise", "statement")
LIST = "Shown only by make test-all"
# a file, or one test in it
TEST = re.compile(r"`(tests/[\w/]+\.py)(?:::(test_\w+))?`")


class Promise(NamedTuple):
    """One cell of a table of promises.

    Attributes:
        heading: that of the table, or of the page.
        column: that of the cell, where a table has several.
        text: the first sentence of the promise.
        tests: path and function, or "" for the whole file.
    """

    heading: str
    column: str
    text: str
    tests: list[tuple[str, str]]


def named_tests() -> set[tuple[str, str]]:
    """Return path and function, or "", of all tests that the pages name, also outside of tables."""
    return {found for page in PAGES for found in TEST.findall(_text(page))}


def promises() -> Iterator[Promise]:
    """Yield all promises of all pages."""
    for page in PAGES:
        heading, columns = "", list[str]()
        for line in _text(page).splitlines():
            cells = [cell.strip() for cell in line.strip("| ").split(" | ")]
            if line.startswith("#"):
                heading, columns = heading if heading and page != PROMISES else line.lstrip("# "), []
            elif cells[0] in HEADERS:
                columns = cells[1:]
            elif not line.startswith("|"):
                columns = []
            elif columns and not line.startswith("| ---"):
                text = re.split(r"(?<=[.]) ", cells[0])[0]
                for column, cell in zip(columns, cells[1:], strict=True):
                    yield Promise(heading, column if len(columns) > 1 else "", text, TEST.findall(cell))


def only_in_test_all() -> list[str]:
    """Return an entry of the list for each promise none of whose tests runs in `make test`, with its columns."""
    found: dict[tuple[str, str], list[str]] = {}
    for heading, column, text, tests in promises():
        if not any(is_in_make_test(*test) for test in tests):
            found.setdefault((heading, text), []).append(column)
    return [f"{', '.join(filter(None, [heading, *columns]))}: {text}" for (heading, text), columns in found.items()]


def is_in_make_test(path: str, function: str) -> bool:
    """Return True if this test, or any test of a whole file, has no mark `all`; False if there is none."""
    tests = marks_of(path)
    return not all([tests.get(function, True)] if function else tests.values())


@functools.cache
def marks_of(path: str) -> dict[str, bool]:
    """Return name -> whether it has the mark `all`, for the tests of a file; nothing if the file does not exist."""
    file = REPOSITORY / path
    if not file.is_file():
        return {}
    tree = ast.parse(file.read_text(encoding="utf-8"))
    whole = any(
        isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark" and _is_all(node.value)
        for node in tree.body
    )
    return {
        node.name: whole or any(map(_is_all, node.decorator_list))
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def _is_all(mark: ast.expr) -> bool:
    marks = mark.elts if isinstance(mark, (ast.List, ast.Tuple)) else [mark]
    return any(ast.unparse(each) == "pytest.mark.all" for each in marks)


def _text(page: str) -> str:
    return (REPOSITORY / page).read_text(encoding="utf-8")


if __name__ == "__main__":
    for shown in only_in_test_all():
        print(textwrap.fill(shown, 100, initial_indent="- ", subsequent_indent="  ", break_on_hyphens=False))
