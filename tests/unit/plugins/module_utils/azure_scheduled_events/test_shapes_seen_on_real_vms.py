# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documents in the shapes that were captured on real VMs, and the changes between them."""

from __future__ import annotations

import json

import pytest
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events import (
    changes,
    parse_document,
)

# the live migration of two VMs, as Microsoft's documentation describes it
MIGRATION = {
    "EventId": "E4C19B06-5D38-4F7A-9C2E-61B7F0A8D304",
    "EventStatus": "Scheduled",
    "EventType": "Freeze",
    "ResourceType": "VirtualMachine",
    "Resources": ["EastDE_4", "EastDE_5"],
    "NotBefore": "Wed, 07 Jun 2023 20:15:03 GMT",
    "Description": "Virtual machine is being paused because of a memory-preserving Live Migration operation.",
    "EventSource": "Platform",
    "DurationInSeconds": 5,
}
STARTED = dict(MIGRATION, EventStatus="Started", NotBefore="")
# a Spot VM's eviction: the first incarnation, no text, unknown duration
EVICTION = dict(MIGRATION, EventType="Preempt", Resources=["spot-vmss_4"], Description="", DurationInSeconds=-1)
# a user's restart, approved by a poller that missed incarnation 3
RESTART = dict(MIGRATION, EventType="Reboot", Resources=["build-vm7"], EventSource="User", DurationInSeconds=-1)
# api-version 2019-08-01: started, no time, no duration, a long-lived incarnation
OLDER = {name: value for name, value in STARTED.items() if name != "DurationInSeconds"}


def read(incarnation, *events):
    parsed = parse_document(json.dumps({"DocumentIncarnation": incarnation, "Events": list(events)}, indent=2))
    assert parsed.warnings == () and parsed.complete
    return parsed


@pytest.mark.parametrize(
    "incarnation, entry, shown",
    [
        (2, MIGRATION, ("Scheduled", "2023-06-07T20:15:03Z", 5)),
        (3, STARTED, ("Started", None, 5)),
        (1, EVICTION, ("Scheduled", "2023-06-07T20:15:03Z", None)),
        (2, RESTART, ("Scheduled", "2023-06-07T20:15:03Z", None)),
        (311, OLDER, ("Started", None, None)),
    ],
    ids=["migration", "started", "eviction", "restart", "older version"],
)
def test_shape_is_read_without_a_warning(incarnation, entry, shown):
    (event,) = read(incarnation, entry).events
    found = event.as_dict()
    assert (found["status"], found["not_before"], found["duration_seconds"]) == shown
    assert (found["resources"], found["description"]) == (entry["Resources"], entry["Description"])


@pytest.mark.parametrize(
    "documents, story",
    [
        ([(1,), (2, MIGRATION), (3, STARTED), (4,)], ["appeared", "started", "gone"]),
        # its start was missed
        ([(1,), (2, RESTART), (4,)], ["appeared", "gone"]),
    ],
    ids=["live migration", "restart"],
)
def test_course_has_all_changes(documents, story):
    seen = [read(*each) for each in documents]
    found = [change.kind for before, after in zip(seen, seen[1:]) for change in changes(before, after)]
    assert found == story
