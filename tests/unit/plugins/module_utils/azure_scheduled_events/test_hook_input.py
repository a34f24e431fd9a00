# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: GPL-3.0-or-later
"""The input of a hook is printable for all texts, and its time is never more than the time that is left."""

from __future__ import annotations

import json

import pytest
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.hook_input import (
    LATE_BUDGET,
    MARGIN,
    MAX_LIST,
    MAX_VALUE,
    HookInput,
    margin_within,
    preparation_seconds,
    step_seconds,
)

hypothesis = pytest.importorskip("hypothesis", reason="ansible-test's own Python has no hypothesis")
from hypothesis import example, given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

# with lone surrogates, which JSON allows
texts = st.text(st.characters(codec=None, exclude_categories=()), max_size=30)
HOSTILE = "a b\n\0\x1b]0;t\x07\x9b\u2028\u202e\ud800 `id` $(id) EVENT_ID=x \U0001f600\u00a0"


def test_without_an_event_the_variables_are_empty():
    given_variables = HookInput({}, "prepare", "vm1").variables()
    assert {name: value for name, value in given_variables.items() if value} == {
        "EVENT_STAGE": "prepare",
        "EVENT_RESOURCE": "vm1",
    }


def test_variables_and_json_have_the_same_values():
    event = {
        "event_id": "A",
        "event_type": "Reboot",
        "status": "Scheduled",
        "source": "User",
        "resource_type": "VirtualMachine",
        "description": "Host",
        "not_before": "2026-11-21T12:00:00Z",
        "resources": ["vm1", "vm2"],
        "duration_seconds": 0,
    }
    known = HookInput(event, "recover", "vm1", "completed", "2026-11-21T11:55:00Z", 12.7, 7.9)
    assert known.variables() == {
        "EVENT_ID": "A",
        "EVENT_TYPE": "Reboot",
        "EVENT_STATUS": "Scheduled",
        "EVENT_SOURCE": "User",
        "EVENT_RESOURCE_TYPE": "VirtualMachine",
        "EVENT_DESCRIPTION": "Host",
        "EVENT_NOT_BEFORE": "2026-11-21T12:00:00Z",
        "EVENT_SECONDS_LEFT": "12",
        "EVENT_DURATION": "0",
        "EVENT_STAGE": "recover",
        "EVENT_OUTCOME": "completed",
        "EVENT_RESOURCE": "vm1",
        "EVENT_FIRST_SEEN": "2026-11-21T11:55:00Z",
        "EVENT_RESOURCES": "vm1 vm2",
        "HOOK_SECONDS": "7",
    }
    written = known.as_json(approved=True)
    assert written.endswith(b"}\n") and json.loads(written) == {
        **event,
        "stage": "recover",
        "outcome": "completed",
        "resource_name": "vm1",
        "seconds_left": 12,
        "first_seen": "2026-11-21T11:55:00Z",
        "hook_seconds": 7,
        "approved": True,
    }


def test_seconds_of_a_hook_are_whole_from_one_on():
    shown = [HookInput({}, "prepare", hook_seconds=each).variables()["HOOK_SECONDS"] for each in (0.5, 1.0, 1.5)]
    assert shown == ["0.5", "1", "1"]


def test_names_are_separated_by_white_space_whatever_they_contain():
    names = ["a b", "", "c\nd", "e\u00a0f", " "]
    assert HookInput({"resources": names}, "prepare").variables()["EVENT_RESOURCES"] == "a?b ? c?d e?f ?"


def test_long_value_is_cut_and_says_so():
    many = {"resources": [f"vm_{number:06d}" for number in range(100000)], "description": "\u00e4" * 9000}
    variables = HookInput(many, "prepare").variables()
    assert len(variables["EVENT_RESOURCES"]) == MAX_LIST and variables["EVENT_RESOURCES"].endswith("...")
    assert MAX_VALUE - 2 <= len(variables["EVENT_DESCRIPTION"].encode()) <= MAX_VALUE
    longest = HookInput({"description": "x" * MAX_VALUE}, "prepare").variables()["EVENT_DESCRIPTION"]
    assert longest == "x" * MAX_VALUE


@given(st.lists(texts, min_size=8, max_size=8), st.lists(texts, max_size=4))
@example([HOSTILE] * 8, [HOSTILE, ""])
@example(["\U0001f600" * 9000] * 8, ["\U0001f600" * 9000])
def test_any_text_is_printable_in_every_variable(values, names):
    members = ("event_id", "event_type", "status", "source", "resource_type", "description")
    known = HookInput({**dict(zip(members, values)), "resources": names}, "prepare", values[6], values[7])
    variables = known.variables()
    for name, value in variables.items():
        assert value.isprintable()
        assert len(value.encode("utf-8")) <= (MAX_LIST if name == "EVENT_RESOURCES" else MAX_VALUE)
    assert len(variables["EVENT_RESOURCES"].split()) == len(names)
    read = json.loads(known.as_json())
    assert read["resources"] == names and known.as_json().isascii()
    read["resource_name"].encode("utf-8")


@pytest.mark.parametrize(
    "timeout, left, seconds",
    [
        (300, None, 300),
        (300, 7200, 300),
        (300, 25, 20),
        (300, 24.9, 19),
        (300, 8, 6),
        (300, 0.5, 1),
        (0.5, 0.2, 0.5),
        # NotBefore has passed, and the event has not started
        (300, 0, 30),
        (10, -60, 10),
    ],
)
def test_seconds_of_a_step(timeout, left, seconds):
    assert step_seconds(timeout, left) == seconds


@given(st.floats(0.1, 1e6), st.floats(1e-3, 1e6))
def test_step_ends_before_the_start_of_the_event(timeout, left):
    seconds = step_seconds(timeout, left)
    assert 0 < seconds <= timeout
    assert seconds <= max(1.0, left - margin_within(left))


@given(st.floats(0.1, 1e6), st.floats(0, 1e6), st.floats(0, 3600))
def test_preparation_keeps_the_margin_but_at_most_a_quarter_of_the_notice(left, more, margin):
    notice = left + more
    kept = left - preparation_seconds(left, notice, margin)
    assert kept == pytest.approx(min(margin, notice / 4), abs=1e-6)
    assert preparation_seconds(-more, notice, margin) == LATE_BUDGET
    assert margin_within(30) == MARGIN and margin_within(-1) == 0
