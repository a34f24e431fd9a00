# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Knobs from scenarios, JSON and the text of a command line."""

from __future__ import annotations

from typing import Any

import pytest

from imds_simulator.scenario.knobs import KnobError, Knobs, change_knobs, describe_knobs


@pytest.mark.parametrize(
    ("knob", "value"),
    [
        ("unknown_event_status", 500),
        ("rate_limit", -1),
        ("rate_limit", True),
        ("enable_delay", "x"),
        ("notice_overrides", {"Freez": 1}),
        ("notice_overrides", {"Freeze": "soon"}),
        ("notice_overrides", 7),
        ("extra_api_versions", 5),
        ("arm_token", "a b"),
        ("xff_status", 399),
        ("xff_status", 600),
    ],
)
def test_wrong_knob_is_an_error_that_names_it(knob: str, value: Any) -> None:
    with pytest.raises(KnobError, match=f"^knob {knob}"):
        change_knobs(Knobs(), {knob: value})


def test_all_wrong_knobs_are_named() -> None:
    with pytest.raises(KnobError, match="etagg.*did you mean etag.*; knob rate_limit: "):
        change_knobs(Knobs(), {"etagg": 1, "rate_limit": "x", "etag": True})


@pytest.mark.parametrize(
    ("knob", "given", "value"),
    [
        ("etag", "off", False),
        ("rate_limit", "off", 0),
        ("rate_limit", False, 0),
        ("approve_hold", "on", float("inf")),
        ("approve_hold", True, float("inf")),
        ("unknown_event_status", "404", 404),
        ("partial_batch", "Apply_Valid", "apply_valid"),
        ("extra_api_versions", "2031-01-01,2032-01-01", ("2031-01-01", "2032-01-01")),
        ("extra_api_versions", "", ()),
        ("idle_disable", "2h", 7200),
        ("xff_status", "503", 503),
        ("xff_status", 599, 599),
        ("xff_status", 400, 400),
    ],
)
def test_knob_has_the_same_value_from_text_and_from_yaml(knob: str, given: Any, value: Any) -> None:
    assert getattr(change_knobs(Knobs(), {knob: given}), knob) == value


def test_knob_by_type_keeps_the_other_types() -> None:
    for given in ("Freeze:5m,Reboot:1m", {"Freeze": 300, "Reboot": "1m"}):
        notice = change_knobs(Knobs(), {"notice_overrides": given}).notice_overrides
        assert (notice["Freeze"], notice["Reboot"], notice["Preempt"]) == (300, 60, 30)


def test_described_knobs_can_be_set() -> None:
    knobs = change_knobs(Knobs(), {"approve_hold": True, "extra_api_versions": ["2031-01-01"]})
    assert describe_knobs(knobs)["approve_hold"] == "on"
    assert change_knobs(Knobs(), describe_knobs(knobs)) == knobs
