# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documents in the shapes that were captured on real VMs."""

from __future__ import annotations

import json

from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.changes import changes
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.document import (
    parse_document,
)
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.identity import (
    affects,
    resource_name_of,
)

SHARED = {"ResourceType": "VirtualMachine", "EventSource": "Platform"}

# api-version 2019-08-01: started, no time, no duration, a long-lived incarnation
STARTED_WITHOUT_DURATION = {
    "DocumentIncarnation": 311,
    "Events": [
        dict(
            SHARED,
            EventId="5B0E9D71-2A4C-4E0C-8A61-0C6E3E5A7F01",
            EventStatus="Started",
            EventType="Freeze",
            Resources=["shop-pool-20417733-vmss_31"],
            NotBefore="",
            Description="Host server is undergoing maintenance.",
        )
    ],
}
# a Spot VM's eviction: the first incarnation, no text, unknown duration
EVICTION = {
    "DocumentIncarnation": 1,
    "Events": [
        dict(
            SHARED,
            EventId="A10C2F64-7711-4D0E-BE50-3D1E8C6F9A02",
            EventStatus="Scheduled",
            EventType="Preempt",
            Resources=["batch-spot-77120045-vmss_4"],
            NotBefore="Tue, 14 Mar 2023 06:40:12 GMT",
            Description="",
            DurationInSeconds=-1,
        )
    ],
}
# a user's restart, approved by a poller that missed incarnation 3
APPROVED_RESTART = [
    {"DocumentIncarnation": 1, "Events": []},
    {
        "DocumentIncarnation": 2,
        "Events": [
            dict(
                SHARED,
                EventId="7F3D5A28-90B2-4C7F-8E55-9B60A4D2C103",
                EventStatus="Scheduled",
                EventType="Reboot",
                Resources=["build-vm7"],
                NotBefore="Fri, 05 May 2023 11:02:40 GMT",
                Description="",
                EventSource="User",
                DurationInSeconds=-1,
            )
        ],
    },
    {"DocumentIncarnation": 4, "Events": []},
]
# the live migration of two VMs, as Microsoft's documentation describes it
MIGRATION = dict(
    SHARED,
    EventId="E4C19B06-5D38-4F7A-9C2E-61B7F0A8D304",
    EventStatus="Scheduled",
    EventType="Freeze",
    Resources=["EastDE_4", "EastDE_5"],
    NotBefore="Wed, 07 Jun 2023 20:15:03 GMT",
    Description="Virtual machine is being paused because of a memory-preserving Live Migration operation.",
    DurationInSeconds=5,
)
LIVE_MIGRATION = [
    {"DocumentIncarnation": 1, "Events": []},
    {"DocumentIncarnation": 2, "Events": [MIGRATION]},
    {"DocumentIncarnation": 3, "Events": [dict(MIGRATION, EventStatus="Started", NotBefore="")]},
    {"DocumentIncarnation": 4, "Events": []},
]
# a scale set's VM, whose computer name is the name with the number in base 36
SCALE_SET_VM = {
    "compute": {
        "name": "batch-spot-77120045-vmss_46",
        "osProfile": {"computerName": "batch-spot-77120045-vmss00001a"},
        "vmScaleSetName": "batch-spot-77120045-vmss",
        "zone": "",
    },
    "network": {"interface": []},
}
STANDALONE_VM = {
    "compute": {"name": "build-vm7", "vmScaleSetName": "", "zone": "", "tags": ""},
    "network": {"interface": []},
}


def read(document):
    parsed = parse_document(json.dumps(document, indent=2))
    assert parsed.warnings == () and parsed.complete
    return parsed


def story(documents):
    before, found = None, []
    for document in documents:
        after = read(document)
        found += [(change.kind, change.event.status) for change in changes(before, after)]
        before = after
    return found


def test_started_freeze_of_an_older_version_is_read():
    (event,) = read(STARTED_WITHOUT_DURATION).events
    assert (event.status, event.not_before, event.duration) == ("Started", None, None)


def test_preempt_without_description_is_read():
    (event,) = read(EVICTION).events
    assert event.as_dict()["not_before"] == "2023-03-14T06:40:12Z"
    assert (event.description, event.duration) == ("", None)


def test_restart_whose_start_was_missed_is_gone():
    assert story(APPROVED_RESTART) == [("appeared", "Scheduled"), ("gone", "Scheduled")]


def test_live_migration_has_all_changes():
    assert story(LIVE_MIGRATION) == [("appeared", "Scheduled"), ("started", "Started"), ("gone", "Started")]


def test_incarnation_zero_is_a_number():
    assert read({"DocumentIncarnation": 0, "Events": []}).incarnation == 0


def test_the_name_in_resources_is_that_of_the_instance_metadata():
    assert resource_name_of(SCALE_SET_VM) == "batch-spot-77120045-vmss_46"
    assert resource_name_of(STANDALONE_VM) == "build-vm7"
    (restart,) = read(APPROVED_RESTART[1]).events
    (eviction,) = read(EVICTION).events
    assert affects(restart, resource_name_of(STANDALONE_VM))
    # vmss_4 is not vmss_46
    assert not affects(eviction, resource_name_of(SCALE_SET_VM))
