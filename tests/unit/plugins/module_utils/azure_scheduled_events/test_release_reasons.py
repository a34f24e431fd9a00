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
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.release import (
    blocked_by_scope,
    blocked_by_state,
    unknown_value,
)


def event(**values):
    noon = datetime(2026, 11, 21, 12, 0, tzinfo=timezone.utc)
    usual = ScheduledEvent("A", "Reboot", "Scheduled", ("vm1",), "VirtualMachine", noon, "", "User", None)
    return usual._replace(**values)


def code(blocked):
    return blocked and blocked.code


@pytest.mark.parametrize(
    "values, context, expected",
    [
        ({}, {}, None),
        ({"event_type": "Hibernate"}, {}, None),
        ({"status": "Started"}, {}, "started"),
        ({"status": "Started"}, {"approved": True}, "started"),
        ({}, {"seen_started": True}, "started"),
        ({"status": "Paused"}, {}, "unknown_status"),
        ({"status": ""}, {"approved": True}, "unknown_status"),
        ({}, {"approved": True}, "already_approved"),
    ],
)
def test_blocked_by_state_returns_the_first_reason(values, context, expected):
    assert code(blocked_by_state(event(**values), **context)) == expected


@pytest.mark.parametrize(
    "resources, expected",
    [
        (("vm1",), None),
        (("VM1", "_vm1"), None),
        (("vm1", "vm2"), "others_affected"),
        (("vm2",), "others_affected"),
        ((), "others_affected"),
    ],
)
def test_blocked_by_scope_protects_other_vms(resources, expected):
    assert code(blocked_by_scope(event(resources=resources), "vm1")) == expected


@pytest.mark.parametrize("name", [None, ""])
def test_blocked_by_scope_without_own_name_raises(name):
    with pytest.raises(OwnNameUnknown):
        blocked_by_scope(event(), name)


def test_blocked_by_scope_text_names_the_vms_in_printable_form():
    blocked = blocked_by_scope(event(resources=("vm1", "vm\ud800")), "vm1")
    assert blocked.text == "an approval would release other VMs too (vm1, vm\\ud800)"


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
