# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The comparison of a printed output with the real one, which may not accept a difference."""

from __future__ import annotations

import pytest

from support.start.page import is_shown

pytestmark = pytest.mark.all

OUTPUT = ["one", "two", "three"]


@pytest.mark.parametrize(
    "printed",
    [OUTPUT, ["..."], ["...", "three"], ["one", "..."], ["one", "...", "three"], ["...", "two", "..."]],
)
def test_is_shown_with_ellipses_for_missing_lines_is_true(printed: list[str]) -> None:
    assert is_shown(OUTPUT, printed)


@pytest.mark.parametrize(
    "printed",
    [[], ["one"], ["two", "three"], ["...", "two"], ["two", "..."], ["three", "...", "one"], [*OUTPUT, "four"]],
)
def test_is_shown_with_other_lines_is_false(printed: list[str]) -> None:
    assert not is_shown(OUTPUT, printed)
