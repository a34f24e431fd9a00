# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The shapes of notifications (docs/reference/scheduled-events.md 5.11)."""

from __future__ import annotations

import json

import pytest

from imds_simulator.protocol.event_grid import handshake, is_validated, notification
from imds_simulator.protocol.resource_ids import ResourceIds
from support.simulator.simulations import T0, make_simulation

ID = "5F0A3C52-7E1B-4D55-9C0E-2B8E4C1D9A10"
SUBSCRIPTION = "/subscriptions/00000000-0000-4000-8000-00005eed0001"
RESOURCE = f"{SUBSCRIPTION}/resourceGroups/rg-simulated/providers/Microsoft.Compute/virtualMachines/vm1"
EVENT = f"{RESOURCE}/providers/microsoft.maintenance/scheduledevents/{ID.lower()}"
FREEZE = {"type": "Freeze", "resources": ["vm1", "vm2"], "id": ID, "notice": "15m", "duration": 5, "description": "d"}


def notifications(plan, until=10000.0, schema="eventgrid", **more):
    """Return the notifications until ``until`` seconds after T0, as (headers, data)."""
    simulation = make_simulation(plan, **more)
    world, ids = simulation.world, ResourceIds(simulation.world.groups)
    occurrences = enumerate(simulation.advance_to(T0 + until))
    made = [notification(each, f"id{number}", schema, ids, world.vms) for number, each in occurrences]
    return [(each.headers, json.loads(each.body)) for each in made if each is not None]


def properties(body):
    return body[0]["data"]["resourceInfo"]["properties"]


def shown(**more):
    """Return status, type and time of NotBefore in each notification about an event."""
    all_properties = [properties(body) for _headers, body in notifications({**FREEZE, **more})]
    return [(each["EventStatus"], each["EventType"], each["NotBefore"][-12:-4]) for each in all_properties]


def test_event_grid_schema_is_that_of_the_document():
    ((headers, body),) = notifications(FREEZE, until=1)
    assert headers == {"Content-Type": "application/json; charset=utf-8", "aeg-event-type": "Notification"}
    assert body == [
        {
            "id": "id0",
            "topic": SUBSCRIPTION,
            "subject": EVENT,
            "data": {
                "resourceInfo": {
                    "id": EVENT,
                    "name": ID.lower(),
                    "type": "microsoft.maintenance/scheduledEvents",
                    "location": "westeurope",
                    "properties": {
                        "EventId": ID.lower(),
                        "EventType": "Freeze",
                        "EventStatus": "Scheduled",
                        "NotBefore": "Fri, 15 Jan 2027 08:15:00 GMT",
                        "Description": "d",
                        "EventSource": "Platform",
                        "Resources": ["vm1", "vm2"],
                        "ResourceType": "VirtualMachine",
                        "DurationInSeconds": 5,
                        "ScheduledEventApiVersion": "2020-07-01",
                    },
                },
                "apiVersion": "2024-07-01",
            },
            "eventType": "Microsoft.ResourceNotifications.MaintenanceResources.ScheduledEventEmitted",
            "dataVersion": "3.0",
            "metadataVersion": "1",
            "eventTime": "2027-01-15T08:00:00.000Z",
        }
    ]


def test_cloudevents_schema_has_the_same_data():
    ((_headers, grid),) = notifications(FREEZE, until=1)
    ((headers, cloud),) = notifications(FREEZE, until=1, schema="cloudevents")
    assert headers == {"Content-Type": "application/cloudevents+json; charset=utf-8"}
    assert cloud == {
        "specversion": "1.0",
        "id": "id0",
        "source": SUBSCRIPTION,
        "subject": EVENT,
        "type": grid[0]["eventType"],
        "time": grid[0]["eventTime"],
        "data": grid[0]["data"],
    }


def test_each_notification_shows_the_event_as_it_was():
    changes = [{"after": 60, "type": "Reboot", "notice": "30m"}]
    assert shown(approve_after=120, changes=changes) == [
        ("Scheduled", "Freeze", "08:15:00"),
        ("Scheduled", "Reboot", "08:31:00"),
        ("Started", "Reboot", "08:31:00"),
        ("Completed", "Reboot", "08:31:00"),
    ]


@pytest.mark.parametrize(
    "plan, expected",
    [
        ({"cancel_after": 60}, ["Scheduled", "Canceled"]),
        ({"starts": "hardware_failure"}, ["Started", "Completed"]),
        ({"starts": "automatic_approval"}, ["Started", "Completed"]),
    ],
)
def test_notifications_begin_and_end_with_the_event(plan, expected):
    assert [status for status, _type, _not_before in shown(**plan)] == expected


def test_resource_ids_follow_instance_metadata_and_the_names_of_vms():
    compute = {"subscriptionId": "of-mine", "resourceGroupName": "rg-Web", "location": "north"}
    vms = {"a": {"resource_name": "pool_7"}}
    groups = {"pool": {"kind": "scale_set", "instance": {"compute": compute}, "vms": vms}}
    ((_headers, (body,)),) = notifications({**FREEZE, "resources": ["a"]}, until=1, groups=groups)
    assert properties([body])["Resources"] == ["pool_7"]
    assert (body["topic"], body["data"]["resourceInfo"]["location"]) == ("/subscriptions/of-mine", "north")
    assert body["subject"] == (
        "/subscriptions/of-mine/resourceGroups/rg-Web/providers/Microsoft.Compute"
        f"/virtualMachineScaleSets/pool/providers/microsoft.maintenance/scheduledevents/{ID.lower()}"
    )


def test_handshake_is_passed_only_with_the_right_answer():
    made = handshake("eventgrid", "CODE", T0, SUBSCRIPTION)
    assert made.method == "POST" and json.loads(made.body)[0]["data"] == {"validationCode": "CODE"}
    assert is_validated("eventgrid", "CODE", 200, {}, {"validationResponse": "CODE"})
    for status, answer in ((200, {"validationResponse": "other"}), (200, None), (202, {"validationResponse": "CODE"})):
        assert not is_validated("eventgrid", "CODE", status, {}, answer)
    assert handshake("cloudevents", "CODE", T0, SUBSCRIPTION).method == "OPTIONS"
    assert is_validated("cloudevents", "", 200, {"WebHook-Allowed-Origin": "eventgrid.azure.net"}, None)
    assert not is_validated("cloudevents", "", 200, {"WebHook-Allowed-Origin": "example.com"}, None)
    assert not is_validated("cloudevents", "", 404, {"WebHook-Allowed-Origin": "*"}, None)
