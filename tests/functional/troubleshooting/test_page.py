# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""docs/troubleshooting.md: one test follows each section with a block, and its tables lead to each section."""

from __future__ import annotations

import re

import pytest

from support.repository import REPOSITORY
from support.troubleshooting.page import DOCUMENT, sections, shape
from tools.repository.markdown import FENCED

pytestmark = pytest.mark.all

FOLDERS = ("tests/functional/troubleshooting", "tests/salt/guide")
# a mark of a test here, and the section of a test of Salt
_FOLLOWS = re.compile(r"(?:symptom|Section)\(\"(.+?)\"\)")


def test_each_section_is_followed_by_one_test() -> None:
    texts = [path.read_text(encoding="utf-8") for folder in FOLDERS for path in (REPOSITORY / folder).glob("test_*.py")]
    followed = [heading for text in texts for heading in _FOLLOWS.findall(text)]
    assert sorted(followed) == sorted(sections())


def test_tables_lead_to_each_section() -> None:
    text = FENCED.sub("", (REPOSITORY / DOCUMENT).read_text(encoding="utf-8"))
    introduction, _mark, sections_of_the_page = text.partition("\n## ")
    for level, leading in ((3, introduction), (4, sections_of_the_page)):
        headings = re.findall(rf"^{'#' * level} (.+)$", text, re.MULTILINE)
        wanted = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
        assert wanted and wanted <= set(re.findall(r"\]\(#([\w-]+)\)", leading))


def test_shape_keeps_the_status_of_an_answer_and_no_time() -> None:
    assert shape("IMDS answered 410, not before 2026-11-23T18:38:00Z, in 898 s") == shape(
        "IMDS answered 410, not before 2027-01-01T00:00:00Z, in 1 s"
    )
    assert shape("IMDS answered 410") != shape("IMDS answered 429")
