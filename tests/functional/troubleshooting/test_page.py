# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Each section of docs/troubleshooting.md with a block is followed by exactly one test."""

from __future__ import annotations

import re

import pytest

from support.repository import REPOSITORY
from support.troubleshooting.page import ANY_LINES, Block, compare, sections

pytestmark = pytest.mark.all

FOLDERS = ("tests/functional/troubleshooting", "tests/salt/guide")
# a mark of a test here, and the section of a test of Salt
_FOLLOWS = re.compile(r"(?:symptom|Section)\(\"(.+?)\"\)")


def test_each_section_is_followed_by_one_test() -> None:
    texts = [
        path.read_text(encoding="utf-8")
        for folder in FOLDERS
        for path in (REPOSITORY / folder).glob("test_*.py")
        if path.name != "test_page.py"
    ]
    followed = [heading for text in texts for heading in _FOLLOWS.findall(text)]
    assert sorted(followed) == sorted(sections())


@pytest.mark.parametrize(
    "actual", ["one\nthree\n", "one\ntwo\nfour\n", "zero\none\ntwo\nthree\n", "one\ntwo\nthree\nIMDS answered 410\n"]
)
def test_compare_finds_a_line_that_differs(actual: str) -> None:
    block = Block("console", "command", f"one\n{ANY_LINES}\ntwo\nthree\n")
    with pytest.raises(AssertionError):
        compare("A heading", block, actual)


def test_compare_accepts_other_lines_times_and_seconds() -> None:
    block = Block("console", "command", f"{ANY_LINES}\nnot before 2026-11-23T18:38:00Z, in 898 s\n{ANY_LINES}\nend\n")
    compare("A heading", block, "first\nsecond\nnot before 2027-01-01T00:00:00Z, in 1 s\nend\n")
