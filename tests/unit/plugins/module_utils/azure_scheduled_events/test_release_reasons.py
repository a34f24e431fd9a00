# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: GPL-3.0-or-later
"""The reasons against an approval, by their codes."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.document import (
    ScheduledEvent,
)
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.errors import (
    OwnNameUnknown,
)
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.identity import vm_key
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.release import (
    ONE_DOCUMENT,
    Report,
    own_obstacles,
    unknown_value,
)
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.tracking import (
    Sighting,
)


def event(**values):
    noon = datetime(2026, 11, 21, 12, 0, tzinfo=timezone.utc)
    usual = ScheduledEvent("A", "Reboot", "Scheduled", ("vm1",), "VirtualMachine", noon, "", "User", None)
    return usual._replace(**values)


def code(blocked):
    return blocked and blocked.code


def sole(*resources, obstacle=None, own_name="vm1", releases_others=False, **values):
    listed = event(resources=resources, **values)
    sighting = Sighting(listed, True, frozenset(map(vm_key, resources)), bool(resources))
    return own_obstacles(Report(sighting, True, obstacle), own_name, releases_others)


@pytest.mark.parametrize(
    "resources, expected",
    [
        (("vm1",), []),
        (("VM1", "_vm1"), []),
        (("vm1", "vm2"), ["others_affected"]),
        (("vm2",), ["others_affected"]),
        ((), ["unreadable", "others_affected"]),
    ],
)
def test_own_obstacles_protect_other_vms(resources, expected):
    assert list(map(code, sole(*resources))) == expected
    assert list(map(code, sole(*resources, releases_others=True))) == expected[:-1]


def test_own_obstacles_of_a_vm_that_the_event_does_not_affect_count():
    for resources in (("vm1",), ("vm1", "vm2"), ("vm2",)):
        assert ONE_DOCUMENT in sole(*resources, obstacle=ONE_DOCUMENT, releases_others=True)


def test_own_obstacles_begin_with_the_event():
    assert list(map(code, sole("vm1", "vm2", status="Started", obstacle=ONE_DOCUMENT))) == [
        "started",
        "one_document",
        "others_affected",
    ]


@pytest.mark.parametrize("name", [None, ""])
def test_own_obstacles_without_own_name_raise(name):
    with pytest.raises(OwnNameUnknown):
        sole("vm1", own_name=name)
    assert sole("vm1", own_name=name, releases_others=True) == []


def test_own_obstacles_name_the_vms_in_printable_form():
    (obstacle,) = sole("vm1", "vm\ud800")
    assert obstacle.text == "an approval would release other VMs too (vm1, vm\\ud800)"


@pytest.mark.parametrize(
    "values, expected",
    [
        ({}, None),
        ({"source": None, "resource_type": None}, None),
        ({"event_type": ""}, "unknown_type"),
        ({"status": "Paused"}, "unknown_status"),
        ({"source": "Robot"}, "unknown_source"),
        ({"resource_type": "Rack"}, "unknown_resource_type"),
    ],
)
def test_unknown_value_names_the_field(values, expected):
    assert code(unknown_value(event(**values))) == expected
