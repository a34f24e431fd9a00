# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

from __future__ import annotations

import pytest

from ready_hooks.hooks.command import variables


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"A": "b", "NUMBER": 5, "_x1": ""}, {"A": "b", "NUMBER": "5", "_x1": ""}),
        ("A=b=c d", {"A": "b=c d"}),
        ("A=", {"A": ""}),
        ({}, {}),
    ],
)
def test_variables_are_a_mapping_or_one_text(given: object, expected: dict[str, str]) -> None:
    assert variables(given) == expected


@pytest.mark.parametrize(
    "given", ["A", "=b", "1A=b", {"A B": "c"}, {"": "c"}, {"A": None}, {"A": True}, {"A": "\0"}, 5]
)
def test_variables_refuse_wrong_names_and_values(given: object) -> None:
    with pytest.raises(ValueError):
        variables(given)
