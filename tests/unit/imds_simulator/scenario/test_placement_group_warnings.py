# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Warnings about events of several placement groups (docs/reference/scheduled-events.md 3.1.9)."""

from __future__ import annotations

from imds_simulator.scenario.placement_group_warnings import placement_group_warnings

VMS = {"a": {"placement_group": "one"}, "b": {"placement_group": "one"}, "c": {"placement_group": "two"}, "d": None}


def test_warning_about_an_event_of_several_placement_groups() -> None:
    events = [{"resources": names} for names in (["a", "b"], ["a", "c"], ["c", "d"], ["d"])]
    found = placement_group_warnings({"groups": {"web": {"vms": VMS}}, "events": events})
    assert [path for path, _text in found] == [("events", 1, "resources"), ("events", 2, "resources")]
