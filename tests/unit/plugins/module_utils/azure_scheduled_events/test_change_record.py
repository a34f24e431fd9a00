# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: GPL-3.0-or-later
"""The record of a change that rulebooks read."""

from __future__ import annotations

import json

from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.change_record import (
    change_record,
)

EVENT = {"event_id": "A", "resources": ["vm1"]}
OTHER = {"event_id": "B", "resources": ["vm1", "vm2"]}


def test_record_has_each_value_in_its_member():
    record = change_record("gone", EVENT, "7", "2026-11-21T10:15:00Z", "program", "vm1", "completed", "/id", [OTHER])
    assert json.loads(json.dumps(record)) == {
        "schema": "azure_imds.scheduled_events/change/1",
        "id": "7",
        "change": "gone",
        "outcome": "completed",
        "event": EVENT,
        "observed_at": "2026-11-21T10:15:00Z",
        "reporter": "vm1",
        "reported_by": "program",
        "resource_id": "/id",
        "other_events": [OTHER],
    }


def test_unknown_values_of_a_record_are_empty():
    record = change_record("started", EVENT, "7", "2026-11-21T10:15:00Z", "program")
    assert [record[name] for name in ("reporter", "outcome", "resource_id", "other_events")] == ["", None, None, []]


def test_record_is_independent_of_the_events_that_it_was_made_of():
    event, other = dict(EVENT), dict(OTHER)
    record = change_record("changed", event, "7", "", "program", other_events=[other])
    event["event_id"] = other["event_id"] = "C"
    assert (record["event"]["event_id"], record["other_events"][0]["event_id"]) == ("A", "B")
