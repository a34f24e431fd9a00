# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

from __future__ import annotations

from typing import Any

import pytest

from ready_hooks.core.report import NAMES, Value
from ready_hooks.hooks.notify import template

VALUES: dict[str, Value] = {
    **dict.fromkeys(NAMES, ""),
    "event_type": "Reboot",
    "description": '"}, "{event_type} {{stage}}',
    "seconds_left": 899,
    "duration": None,
}


def test_fill_replaces_placeholders_once_and_keeps_the_structure() -> None:
    filled = template.fill({"{event_type}": ["a {description}", 1, True, None, {"b": "{stage}"}]}, VALUES)
    assert filled == {"Reboot": ['a "}, "{event_type} {{stage}}', 1, True, None, {"b": ""}]}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("{seconds_left}", 899),
        ("{duration}", None),
        ("in {seconds_left} s", "in 899 s"),
        ("after {duration} s", "after  s"),
        ("{{seconds_left}}", "{seconds_left}"),
        ("{ seconds_left } {", "{ seconds_left } {"),
    ],
)
def test_fill_keeps_the_type_of_a_whole_placeholder(given: str, expected: Value) -> None:
    assert template.fill(given, VALUES) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ('{"a": "{stage}"}', {"a": "{stage}"}),
        ("[1]", [1]),
        ("{event_type} here", "{event_type} here"),
        ("12", "12"),
    ],
)
def test_body_reads_json_in_a_text(given: str, expected: Any) -> None:
    assert template.body(given) == expected


@pytest.mark.parametrize("given", ["", {}, 5, True, None, {"a": "{no_such_value}"}, {"{no_such_value}": 1}, ["{a}"]])
def test_body_refuses_what_is_not_a_template(given: object) -> None:
    with pytest.raises(ValueError):
        template.body(given)


def test_body_refuses_a_template_that_is_nested_too_deep() -> None:
    given: list[Any] = [1]
    for _level in range(40):
        given = [given]
    with pytest.raises(ValueError, match="deep"):
        template.body(given)
