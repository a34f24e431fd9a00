# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Notifications to a real web hook (docs/simulator.md, "Notifications")."""

from __future__ import annotations

import socket
import time
from functools import partial

import pytest

from support.ready_hooks.web_server import Answer
from support.simulator.raw_http import send_request
from support.simulator.webhook import Webhook, notification_of, properties_of, with_handshake
from support.simulator_process import reserved_port
from support.wait import wait_until

ID = "5F0A3C52-7E1B-4D55-9C0E-2B8E4C1D9A10"
SCHEMAS = ["eventgrid", "cloudevents"]


@pytest.fixture
def hook():
    with Webhook() as running:
        yield running


@pytest.fixture
def publish(start_pair, hook):
    """Return a function that starts a simulator with a manual clock, which publishes to ``hook`` or ``url``."""
    return lambda **notify: start_pair(notify={"url": hook.url, **notify})


def schedule(sim, **more):
    return sim.post("/events", {"type": "Reboot", "resources": ["vm1", "vm2"], "id": ID, **more})


def schedule_other(sim, name, **more):
    sim.post("/events", {"type": "Freeze", "resources": ["vm1"], "name": name, **more})


def results(sim, what="notification"):
    return [line["result"] for line in sim.log(what=what)]


def wait_for_results(sim, count, what="notification"):
    wait_until(lambda: len(results(sim, what)) >= count, lambda: f"{results(sim, what)}")
    return results(sim, what)


def test_events_are_published_in_order_with_their_ends(publish, hook):
    sim = publish(token="secret", headers={"X-Team": "web"})
    schedule(sim, name="first", duration=30)
    sim.post("/events/first/change", {"notice": "5m"})
    sim.post("/events/first/approve", {"as": "vm1"})
    sim.advance(2)
    sim.advance(3600)
    # it never appears
    schedule(sim, name="later", at=60)
    sim.post("/events/later/cancel")
    schedule(sim, name="second")
    sim.post("/events/second/cancel")
    received = hook.wait_for(6)
    statuses = [properties_of(each)["EventStatus"] for each in received]
    assert statuses == ["Scheduled", "Scheduled", "Started", "Completed", "Scheduled", "Canceled"]
    assert len({notification_of(each)["id"] for each in received}) == 6
    for each in received:
        assert (each.method, each.target) == ("POST", "/endpoint")
        assert (each.headers["Authorization"], each.headers["X-Team"]) == ("Bearer secret", "web")
        assert each.headers["aeg-event-type"] == "Notification"
        assert properties_of(each)["EventId"] == ID.lower() and properties_of(each)["Resources"] == ["vm1", "vm2"]
    assert wait_for_results(sim, 6) == ["delivered"] * 6


def test_duplicates_have_the_same_id(publish, hook):
    sim = publish(duplicates=1)
    schedule(sim)
    wait_for_results(sim, 2)
    first, second = hook.requests
    assert first.body == second.body


def test_disorder_and_duplicates_are_equal_for_one_seed(publish):
    def order(seed):
        with Webhook() as hook:
            sim = publish(url=hook.url, duplicates=0.5, disorder=60, seed=seed)
            for number in range(8):
                schedule_other(sim, f"e{number}")
            sim.advance(60)
            # the last event comes after all others: no notification about them can follow
            schedule_other(sim, "last")
            sim.advance(60)
            wait_until(lambda: "last" in [line["event"] for line in sim.log(what="notification")])
            return [line["event"] for line in sim.log(what="notification") if line["event"] != "last"]

    orders = [order(seed) for seed in (1, 1, 2)]
    assert orders[0] == orders[1] != orders[2]
    assert orders[0] != sorted(orders[0]) and len(orders[0]) > len(set(orders[0])) == 8


def test_failed_delivery_is_repeated_later_and_others_go_on(publish, hook):
    hook.answers = [Answer(500)]
    sim = publish()
    schedule(sim, name="first")
    wait_for_results(sim, 1)
    schedule_other(sim, "second")
    wait_for_results(sim, 2)
    sim.advance(9)
    assert results(sim) == ["again", "delivered"]
    sim.advance(1)
    wait_for_results(sim, 3)
    first, second, again = hook.requests
    assert first.body == again.body != second.body
    assert [each.headers["aeg-delivery-count"] for each in (first, second, again)] == ["0", "0", "1"]


def test_final_answers_are_not_repeated(publish, hook):
    hook.answers = [Answer(status) for status in (400, 401, 403, 413, 404, 204)]
    sim = publish()
    for number in range(6):
        schedule_other(sim, f"e{number}")
    assert wait_for_results(sim, 6) == ["failed"] * 4 + ["again", "delivered"]


def test_unreachable_web_hook_is_tried_again_until_the_attempts_are_over(publish):
    with reserved_port() as port:
        sim = publish(url=f"http://127.0.0.1:{port}/", attempts=3)
        schedule(sim, notice="1d")
        for count, seconds in enumerate((10, 30, 36000), 1):
            wait_for_results(sim, count)
            sim.advance(seconds)
        schedule_other(sim, "other", notice="1d")
        assert wait_for_results(sim, 4) == ["again", "again", "failed", "again"]
        assert all(line["error"] for line in sim.log(what="notification"))


def test_slow_web_hook_does_not_delay_imds(publish):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        sim = publish(url=f"http://127.0.0.1:{silent.getsockname()[1]}/")
        schedule(sim)
        connection, _address = silent.accept()
        begin = time.monotonic()
        assert [each["EventId"] for each in send_request(sim.endpoints["vm1"]).json["Events"]] == [ID]
        # much less than the 30 s that the web hook has
        assert time.monotonic() - begin < 20
        connection.close()


@pytest.mark.parametrize("schema", SCHEMAS)
def test_handshake_comes_before_the_first_notification(publish, hook, schema):
    # the answer comes in parts
    hook.otherwise = partial(with_handshake, pause=0.005)
    sim = publish(schema=schema, validate=True)
    schedule(sim)
    validation, received = hook.wait_for(2)
    if schema == "cloudevents":
        assert (validation.method, validation.headers["WebHook-Request-Origin"]) == ("OPTIONS", "eventgrid.azure.net")
        assert received.headers["Content-Type"] == "application/cloudevents+json; charset=utf-8"
    else:
        assert validation.headers["aeg-event-type"] == "SubscriptionValidation"
        assert notification_of(validation)["eventType"] == "Microsoft.EventGrid.SubscriptionValidationEvent"
    assert properties_of(received)["EventId"] == ID.lower()
    assert results(sim, "notification-handshake") == ["passed"]


@pytest.mark.parametrize("schema", SCHEMAS)
def test_web_hook_without_handshake_gets_no_notification(publish, hook, schema):
    sim = publish(schema=schema, validate=True, attempts=2)
    schedule(sim)
    wait_for_results(sim, 1, "notification-handshake")
    sim.advance(10)
    assert wait_for_results(sim, 2, "notification-handshake") == ["failed", "failed"]
    sim.post(f"/events/{ID}/cancel")
    assert results(sim) == [] and len(hook.requests) == 2


@pytest.mark.parametrize("kind, requests", [("lost-request", 1), ("lost-answer", 2)])
def test_lost_notification_is_sent_again(publish, hook, kind, requests):
    sim = publish()
    sim.post("/faults", {"kind": kind, "route": "notify", "requests": 1})
    schedule(sim)
    assert wait_for_results(sim, 1) == ["again"] and len(hook.requests) == requests - 1
    sim.advance(10)
    wait_for_results(sim, 2)
    assert len(hook.requests) == requests and len({each.body for each in hook.requests}) == 1


def test_delay_fault_moves_a_notification_behind_the_next(publish, hook):
    sim = publish()
    sim.post("/faults", {"kind": "delay", "delay": 30, "route": "notify", "requests": 1})
    schedule(sim, name="first")
    sim.post("/events/first/change", {"type": "Redeploy"})
    hook.wait_for(1)
    sim.advance(30)
    received = hook.wait_for(2)
    assert [properties_of(each)["EventType"] for each in received] == ["Redeploy", "Reboot"]
    # the delayed request is one, too
    assert sim.get("/faults")["faults"][0]["seen"] == {"vm1": 2}


def test_delay_fault_delays_each_attempt(publish, hook):
    hook.answers = [Answer(500)]
    sim = publish()
    sim.post("/faults", {"kind": "delay", "delay": 30, "route": "notify"})
    schedule(sim)
    for attempt, result in enumerate(("again", "delivered"), 1):
        wait_until(lambda: sim.get("/faults")["faults"][0]["seen"] == {"vm1": attempt}, f"attempt {attempt}")
        assert len(hook.requests) == attempt - 1
        sim.advance(30)
        assert wait_for_results(sim, attempt)[-1] == result
        sim.advance(10)
