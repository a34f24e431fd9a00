# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Reading mappings into values whose fields are keys."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import pytest

from imds_simulator.keys import (
    Found,
    Path,
    Problems,
    from_path,
    key,
    keys_of,
    list_of,
    mapping_of,
    nested,
    read,
)
from imds_simulator.value_types import BOOLEAN, DURATION, EVENT_TYPE, NAME, NAMES, integer, one_of


@dataclass(frozen=True)
class Pause:
    vm: str = key(NAME, "the VM")
    lasts: float = key(DURATION, "how long the pause lasts", default=5.0, name="for")
    reason: str | None = key(one_of("host", "user"), "what causes it", default=None)
    name: str = from_path(lambda path: str(path[-1]), "")

    def check(self) -> Found:
        if self.reason == "user" and self.lasts > 60:
            yield ("for",), "a user pauses a VM for a minute at most"
        if self.reason is None:
            yield (), "the key reason is missing"


@dataclass(frozen=True)
class Plan:
    pauses: tuple[Pause, ...] = key(mapping_of(Pause), "pauses by name")
    first: Pause | None = key(nested(Pause), "the first pause", default=None)
    more: tuple[Pause, ...] = key(list_of(nested(Pause)), "more pauses", default=())


def problems_of(data: Any, path: Path = ()) -> list[tuple[Path, str]]:
    problems = Problems()
    read(Plan, data, path, problems)
    return problems.found


def test_values_have_their_defaults_and_names() -> None:
    problems = Problems()
    plan = read(Plan, {"pauses": {"a": {"vm": "vm1", "for": "1m", "reason": "host"}}}, (), problems)
    assert problems.found == []
    assert plan == Plan((Pause("vm1", 60.0, "host", "a"),))


def test_all_problems_of_a_mapping_are_found_with_their_paths() -> None:
    good = {"vm": "vm1", "reason": "host"}
    data = {"pauses": {"a": {"fur": 1, "for": "soon", "reason": "hst"}, "b": 7, "c": good}, "frist": good, "more": [[]]}
    found = dict(problems_of(data, ("x",)))
    assert set(found) == {
        ("x", "frist"),
        ("x", "more", 0),
        ("x", "pauses", "a"),
        ("x", "pauses", "a", "for"),
        ("x", "pauses", "a", "fur"),
        ("x", "pauses", "a", "reason"),
        ("x", "pauses", "b"),
    }
    assert found["x", "pauses", "a"] == "the key vm is missing"
    assert found["x", "pauses", "a", "fur"] == "unknown key (did you mean for?)"
    assert found["x", "pauses", "a", "reason"] == "'hst' is not one of host, user (did you mean host?)"


@pytest.mark.parametrize(
    ("data", "where"),
    [
        ({"for": "2m", "reason": "user"}, [("for",)]),
        ({"for": "2m", "reason": "user", "fur": 1}, [("fur",), ("for",)]),
        ({"for": "soon", "reason": "user"}, [("for",)]),
        ({}, [()]),
        ({"reason": "nobody"}, [("reason",)]),
        ({"raeson": "host"}, [("raeson",)]),
    ],
)
def test_a_check_is_silent_about_what_follows_from_a_wrong_value(data: Any, where: list[Path]) -> None:
    problems = Problems()
    read(Pause, {"vm": "vm1", **data}, (), problems)
    assert [path for path, _text in problems.found] == where


def test_text_of_the_command_line_has_the_value_that_json_has() -> None:
    assert {name: each.field for name, each in keys_of(Pause).items()} == {
        "vm": "vm",
        "for": "lasts",
        "reason": "reason",
    }
    assert [each.default is dataclasses.MISSING for each in keys_of(Pause).values()] == [True, False, False]
    texts = [(NAMES, "a,b"), (BOOLEAN, "off"), (integer(0), "3"), (EVENT_TYPE, "freeze"), (integer(0), "x")]
    assert [type_.from_text(text) for type_, text in texts] == [["a", "b"], False, 3, "Freeze", "x"]
