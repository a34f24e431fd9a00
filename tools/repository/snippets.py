# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Count the snippets of each page: PYTHONPATH=tests:. python -m tools.repository.snippets [--reasons].

A snippet is a fenced block with a language. It is executed if tests take all of its files, commands or
other texts from the page. tests/unit/project/test_printed.py has the tables.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from support.recipes.printed import Printed, blocks_in
from unit.project.test_printed import DOCUMENTS, is_picture, is_run, reason_of

HEADINGS = ("snippets", "executed", "with a reason", "neither", "page")


class Count(NamedTuple):
    """The snippets of a page.

    Attributes:
        executed: tests take all parts of them from the page.
        explained: a part of them has a reason why no test runs it as it is printed.
        neither: a part of them has no test and no reason.
    """

    executed: int
    explained: int
    neither: int


def count(blocks: Iterable[Sequence[Printed]]) -> Count:
    """Count the blocks of a page that have a language."""
    executed = explained = neither = 0
    for block in blocks:
        if any(is_picture(part) for part in block):
            continue
        if all(is_run(part) for part in block):
            executed += 1
        elif all(is_run(part) or reason_of(part) for part in block):
            explained += 1
        else:
            neither += 1
    return Count(executed, explained, neither)


def main(arguments: Sequence[str]) -> int:
    """Print the counts of all pages with snippets; return 1 if a snippet has neither a test nor a reason."""
    counts = {document: count(blocks_in(document)) for document in sorted(DOCUMENTS)}
    total = Count(*(sum(column) for column in zip(*counts.values(), strict=True)))
    print(line(HEADINGS))
    for document, found in counts.items():
        if any(found):
            print(line((sum(found), *found, document)))
            if "--reasons" in arguments:
                print_reasons(document)
    print(line((sum(total), *total, "all pages")))
    return 1 if total.neither else 0


def line(cells: Sequence[object]) -> str:
    """Return a row of the table."""
    *numbers, page = cells
    widths = [len(heading) for heading in HEADINGS]
    return "  ".join([*(f"{cell:>{width}}" for cell, width in zip(numbers, widths, strict=False)), str(page)])


def print_reasons(document: str) -> None:
    """Print each part of a page that no test runs as it is printed, with its reason."""
    for block in blocks_in(document):
        for part in block:
            if reason_of(part):
                print(f"{'':>41}  {part.name}: {reason_of(part)}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
