# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Notifications to a real web hook (docs/simulator.md, "Notifications")."""

from __future__ import annotations

import time

import pytest

from support.simulator.raw_http import send_request
from support.simulator.webhook import Webhook
from support.simulator_process import reserved_port
from support.wait import wait_until

GROUPS = {"web": {"vms": {"vm1": {}, "vm2": {}}}}
ID = "5F0A3C52-7E1B-4D55-9C0E-2B8E4C1D9A10"


@pytest.fixture
def hook():
    with Webhook() as running:
        yield running


@pytest.fixture
def publish(start_simulator, hook):
    """Return a function that starts a simulator with a manual clock, which publishes to ``hook``."""

    def start(*, args=(), **notify):
        scenario = {"groups": GROUPS, "notify": {"url": hook.url, **notify}}
        return start_simulator(scenario, args=["--clock", "manual", "--knob", "rate_limit=off", *args])

    return start


def schedule(sim, **more):
    return sim.post("/events", {"type": "Reboot", "resources": ["vm1", "vm2"], "id": ID, **more})


def results(sim):
    return [line["result"] for line in sim.get("/log?what=notification")["lines"]]


def lines_until(sim, name):
    """Return the lines about notifications when there is one about the event ``name``."""
    lines = sim.get("/log?what=notification")["lines"]
    return lines if name in [line["event"] for line in lines] else []


def wait_for_results(sim, count):
    return wait_until(lambda: (found := results(sim)) and len(found) >= count and found, lambda: f"{results(sim)}")


def test_events_are_published_in_order_with_their_ends(publish, hook):
    sim = publish(token="secret", headers={"X-Team": "web"})
    schedule(sim, name="first", duration=30)
    sim.post("/events/first/change", {"notice": "5m"})
    sim.post("/events/first/approve", {"as": "vm1"})
    sim.advance(2)
    sim.advance(3600)
    schedule(sim, name="second")
    sim.post("/events/second/cancel")
    received = hook.wait_for(6)
    assert hook.statuses_of_events() == ["Scheduled", "Scheduled", "Started", "Completed", "Scheduled", "Canceled"]
    assert len({each.notification["id"] for each in received}) == 6
    for each in received:
        assert (each.method, each.path) == ("POST", "/endpoint")
        assert (each.headers["Authorization"], each.headers["X-Team"]) == ("Bearer secret", "web")
        assert each.headers["aeg-event-type"] == "Notification"
        assert each.properties["EventId"] == ID.lower() and each.properties["Resources"] == ["vm1", "vm2"]
    assert (
        received[0].properties["NotBefore"]
        != received[1].properties["NotBefore"]
        == received[2].properties["NotBefore"]
    )
    assert results(sim) == ["delivered"] * 6


def test_cloudevents_schema_is_one_object(publish, hook):
    sim = publish(schema="cloudevents")
    schedule(sim)
    (received,) = hook.wait_for(1)
    assert received.headers["Content-Type"] == "application/cloudevents+json; charset=utf-8"
    assert received.body["specversion"] == "1.0" and received.properties["EventStatus"] == "Scheduled"


def test_event_that_is_cancelled_before_it_appears_is_not_published(publish, hook):
    sim = publish()
    schedule(sim, name="later", at=60)
    sim.post("/events/later/cancel")
    schedule(sim, name="now")
    assert [each.properties["EventStatus"] for each in hook.wait_for(1)] == ["Scheduled"]
    assert [line["event"] for line in sim.get("/log?what=notification")["lines"]] in ([], ["now"])


def test_duplicates_have_the_same_id(publish, hook):
    sim = publish(duplicates=1)
    schedule(sim)
    first, second = hook.wait_for(2)
    assert first.body == second.body
    wait_for_results(sim, 2)
    assert len(hook.received) == 2


def test_disorder_and_duplicates_are_equal_for_one_seed(start_simulator):
    orders = []
    for seed in (1, 1, 2):
        with Webhook() as hook:
            sim = start_simulator(
                {"groups": GROUPS, "notify": {"url": hook.url, "duplicates": 0.5, "disorder": 60, "seed": seed}},
                args=["--clock", "manual"],
            )
            for number in range(8):
                sim.post("/events", {"name": f"e{number}", "type": "Freeze", "resources": ["vm1"]})
            sim.advance(60)
            # the last event comes after all others: no notification about them can follow
            sim.post("/events", {"name": "last", "type": "Freeze", "resources": ["vm1"]})
            sim.advance(60)
            lines = wait_until(lambda sim=sim: lines_until(sim, "last"))
            orders.append([line["event"] for line in lines if line["event"] != "last"])
    assert orders[0] == orders[1] != orders[2]
    assert orders[0] != sorted(orders[0]) and len(orders[0]) > len(set(orders[0])) == 8


def test_failed_delivery_is_repeated_later_and_others_go_on(publish, hook):
    hook.statuses = [500]
    sim = publish()
    schedule(sim, name="first")
    wait_for_results(sim, 1)
    sim.post("/events", {"type": "Freeze", "resources": ["vm1"], "name": "second"})
    wait_for_results(sim, 2)
    sim.advance(9)
    assert results(sim) == ["again", "delivered"]
    sim.advance(1)
    wait_for_results(sim, 3)
    first, second, again = hook.received
    assert first.body == again.body != second.body
    assert [each.headers["aeg-delivery-count"] for each in (first, second, again)] == ["0", "0", "1"]


def test_attempts_are_bounded(publish, hook):
    hook.statuses = [503] * 10
    sim = publish(attempts=3)
    schedule(sim)
    for seconds, count in ((0, 1), (10, 2), (30, 3)):
        sim.advance(seconds)
        wait_for_results(sim, count)
    sim.advance(36000)
    schedule(sim, name="other", id="5F0A3C52-7E1B-4D55-9C0E-2B8E4C1D9A11")
    wait_until(lambda: len(results(sim)) > 4)
    attempts = [line for line in sim.get("/log?what=notification")["lines"] if line["id"] == ID]
    assert [line["result"] for line in attempts if line["status"] == "Scheduled"] == ["again", "again", "failed"]


def test_final_answers_are_not_repeated(publish, hook):
    hook.statuses = [400, 401, 403, 413, 404, 204]
    sim = publish()
    for number in range(6):
        sim.post("/events", {"name": f"e{number}", "type": "Freeze", "resources": ["vm1"]})
    assert wait_for_results(sim, 6) == ["failed"] * 4 + ["again", "delivered"]


def test_unreachable_web_hook_is_tried_again(start_simulator):
    with reserved_port() as port:
        sim = start_simulator(
            {"groups": GROUPS, "notify": {"url": f"http://127.0.0.1:{port}/", "attempts": 2}},
            args=["--clock", "manual"],
        )
        schedule(sim)
        assert wait_for_results(sim, 1) == ["again"]
        sim.advance(10)
        assert wait_for_results(sim, 2) == ["again", "failed"]
        assert all(line["error"] for line in sim.get("/log?what=notification")["lines"])


def test_slow_web_hook_does_not_delay_imds(start_simulator):
    import socket

    with socket.create_server(("127.0.0.1", 0)) as silent:
        sim = start_simulator(
            {"groups": GROUPS, "notify": {"url": f"http://127.0.0.1:{silent.getsockname()[1]}/"}},
            args=["--clock", "manual"],
        )
        schedule(sim)
        connection, _address = silent.accept()
        begin = time.monotonic()
        assert [each["EventId"] for each in send_request(sim.endpoints["vm1"]).json["Events"]] == [ID]
        # much less than the 30 s that the web hook has
        assert time.monotonic() - begin < 20
        connection.close()


@pytest.mark.parametrize("schema", ["eventgrid", "cloudevents"])
def test_handshake_comes_before_the_first_notification(publish, hook, schema):
    hook.returns_code, hook.allowed_origin = schema == "eventgrid", "*" if schema == "cloudevents" else ""
    sim = publish(schema=schema, validate=True)
    schedule(sim)
    validation, received = hook.wait_for(2)
    if schema == "cloudevents":
        assert (validation.method, validation.headers["WebHook-Request-Origin"]) == ("OPTIONS", "eventgrid.azure.net")
    else:
        assert validation.headers["aeg-event-type"] == "SubscriptionValidation"
        assert validation.notification["eventType"] == "Microsoft.EventGrid.SubscriptionValidationEvent"
    assert received.properties["EventId"] == ID.lower()
    assert [line["result"] for line in sim.get("/log?what=notification-handshake")["lines"]] == ["passed"]


@pytest.mark.parametrize("schema", ["eventgrid", "cloudevents"])
def test_web_hook_without_handshake_gets_no_notification(publish, hook, schema):
    sim = publish(schema=schema, validate=True, attempts=2)
    schedule(sim)
    hook.wait_for(1)
    wait_until(lambda: sim.get("/log?what=notification-handshake")["lines"])
    sim.advance(10)
    wait_until(lambda: len(sim.get("/log?what=notification-handshake")["lines"]) == 2)
    sim.post(f"/events/{ID}/cancel")
    assert results(sim) == [] and len(hook.received) == 2


def test_lost_request_fault_keeps_a_notification_from_the_web_hook(publish, hook):
    sim = publish()
    sim.post("/faults", {"kind": "lost-request", "route": "notify", "requests": 1})
    schedule(sim)
    assert wait_for_results(sim, 1) == ["again"] and hook.received == []
    sim.advance(10)
    assert len(hook.wait_for(1)) == 1


def test_lost_answer_fault_repeats_a_delivered_notification(publish, hook):
    sim = publish()
    sim.post("/faults", {"kind": "lost-answer", "route": "notify", "requests": 1})
    schedule(sim)
    wait_for_results(sim, 1)
    sim.advance(10)
    first, second = hook.wait_for(2)
    assert first.body == second.body


def test_delay_fault_moves_a_notification_behind_the_next(publish, hook):
    sim = publish()
    sim.post("/faults", {"kind": "delay", "delay": 30, "route": "notify", "requests": 1})
    schedule(sim, name="first")
    sim.post("/events/first/change", {"type": "Redeploy"})
    hook.wait_for(1)
    sim.advance(30)
    received = hook.wait_for(2)
    assert [each.properties["EventType"] for each in received] == ["Redeploy", "Reboot"]


def test_fault_without_a_route_does_not_affect_notifications(publish, hook):
    sim = publish()
    sim.post("/faults", {"kind": "lost-request"})
    schedule(sim)
    assert len(hook.wait_for(1)) == 1


def test_notifications_have_the_resource_ids_of_instance_metadata(start_simulator, hook):
    place = {"compute": {"subscriptionId": "11111111-0000-4000-8000-000000000001", "resourceGroupName": "rg-Web"}}
    sim = start_simulator(
        {
            "groups": {"pool": {"kind": "scale_set", "instance": place, "vms": {"pool_0": {}, "pool_3": {}}}},
            "notify": {"url": hook.url},
        },
        args=["--clock", "manual"],
    )
    sim.post("/events", {"type": "Reboot", "resources": ["pool_3"], "id": ID})
    (received,) = hook.wait_for(1)
    assert received.notification["topic"] == "/subscriptions/11111111-0000-4000-8000-000000000001"
    assert received.notification["subject"] == (
        "/subscriptions/11111111-0000-4000-8000-000000000001/resourceGroups/rg-Web/providers/Microsoft.Compute"
        f"/virtualMachineScaleSets/pool/providers/microsoft.maintenance/scheduledevents/{ID.lower()}"
    )
