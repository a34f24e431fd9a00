# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The live page and its stream (docs/simulator/live-page.md)."""

from __future__ import annotations

import contextlib
import re

import pytest

from support.simulator.event_stream import EventStream, until
from support.simulator.raw_http import send_request
from support.wait import wait_until

BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}


@pytest.fixture
def stream(frozen_simulator):
    with EventStream(frozen_simulator.control) as opened:
        yield opened.messages()


def snapshot(messages):
    return until(messages, lambda kind, data: kind == "snapshot" and data)


def event_named(name):
    return lambda kind, data: next((each for each in data.get("events", {}).values() if each["name"] == name), None)


@pytest.mark.parametrize(
    "accept, kind",
    [
        (BROWSER["Accept"], "text/html"),
        ("text/html", "text/html"),
        ("*/*", "application/json"),
        ("application/json", "application/json"),
        ("application/json, text/html;q=0.5", "application/json"),
        ("text/html;q=0", "application/json"),
    ],
)
def test_root_is_the_page_for_browsers_and_json_for_others(frozen_simulator, accept, kind):
    answer = send_request(frozen_simulator.control, "/", headers={"Accept": accept})
    assert (answer.status, answer.headers.get_content_type()) == (200, kind)


def test_page_loads_only_its_own_files_and_has_no_inline_code(frozen_simulator):
    page = send_request(frozen_simulator.control, "/", headers=BROWSER)
    policy = page.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy and "frame-ancestors 'none'" in policy
    assert page.headers["X-Content-Type-Options"] == "nosniff"
    text = page.body.decode()
    assert sorted(re.findall(r'(?:src|href)="([^"#]+)"', text)) == ["/page.css", "/page.js"]
    assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?! src=)|https?://", text)
    for path, kind in (("/page.css", "text/css"), ("/page.js", "text/javascript")):
        file = send_request(frozen_simulator.control, path)
        assert (file.status, file.headers.get_content_type()) == (200, kind)
        assert b"http://" not in file.body and b"https://" not in file.body and b"innerHTML" not in file.body


def test_stream_begins_with_the_clock_and_all_data(frozen_simulator, stream):
    kind, clock = next(stream)
    assert kind == "clock" and clock["manual"] is True and clock["unix"] == frozen_simulator.get("/state")["unix"]
    kind, data = next(stream)
    assert kind == "snapshot" and list(data["vms"]) == ["vm1", "vm2", "stranger", "pool_0", "pool_3"]
    assert data["groups"]["pool"] == {"kind": "scale_set", "vms": 2} and data["vms"]["pool_3"]["zone"] == "2"


def test_stream_sends_only_what_has_changed(frozen_simulator, stream):
    snapshot(stream)
    send_request(frozen_simulator.endpoints["vm2"])
    requests = until(stream, lambda kind, data: data.get("requests"))
    assert list(requests) == ["vm2"] and requests["vm2"][2:] == ["GET", "scheduledevents", 200, ""]
    made = frozen_simulator.post("/events", {"type": "Freeze", "resources": ["vm1"], "name": "shown"})
    update = until(stream, lambda kind, data: data if event_named("shown")(kind, data) else None)
    assert len(update["events"]) == 1 and "vms" not in update and "requests" not in update
    frozen_simulator.post("/events/shown/approve", {"as": "vm2"})
    shown = until(stream, event_named("shown"))
    assert shown["id"] == made["id"] and list(shown["approvals"]) == ["vm2"]
    frozen_simulator.advance(1)
    assert until(stream, event_named("shown"))["status"] == "Started"


def test_stream_sends_faults_with_counts_and_their_end(frozen_simulator, stream):
    snapshot(stream)
    number = str(frozen_simulator.post("/faults", {"kind": "unavailable", "vm": "vm1", "retry_after": 5})["number"])
    fault = until(stream, lambda kind, data: data.get("faults", {}).get(number))
    assert (fault["kind"], fault["vms"], fault["seen"]) == ("unavailable", ["vm1"], 0) and "retry_after 5" in fault[
        "options"
    ]
    assert send_request(frozen_simulator.endpoints["vm1"]).status == 503
    assert until(stream, lambda kind, data: data.get("faults", {}).get(number))["seen"] == 1
    frozen_simulator.delete(f"/faults/{number}")
    assert until(stream, lambda kind, data: data.get("faults")) == {number: None}


def test_second_client_gets_what_the_first_one_got_before(frozen_simulator, stream):
    snapshot(stream)
    send_request(frozen_simulator.endpoints["stranger"])
    until(stream, lambda kind, data: data.get("requests"))
    with EventStream(frozen_simulator.control) as later:
        assert "stranger" in snapshot(later.messages())["requests"]


def test_knob_that_splits_documents_changes_the_vms(frozen_simulator, stream):
    snapshot(stream)
    frozen_simulator.post("/knobs", {"zone_split": True})
    vms = until(stream, lambda kind, data: data.get("vms"))
    assert {name: vm["scope"] for name, vm in vms.items()} == {"pool_3": "pool/zone 2"}


def test_client_that_does_not_read_delays_nothing_and_catches_up(frozen_simulator):
    control, large = frozen_simulator.control, 900_000
    frozen_simulator.post("/events", {"type": "Freeze", "resources": ["vm1"], "name": "large", "notice": "5h"})
    with EventStream(control, receive_buffer=4096) as slow, EventStream(control) as fast:
        fast_messages = fast.messages()
        snapshot(fast_messages)
        for turn in range(20):
            marker = f"{turn} ".ljust(large, "x")
            frozen_simulator.post("/events/large/change", {"description": marker})
            until(
                fast_messages,
                lambda kind, data: (
                    event_named("large")(kind, data)["description"] == marker if "events" in data else False
                ),
            )
            assert send_request(frozen_simulator.endpoints["vm2"]).status == 200
        until(slow.messages(), lambda kind, data: (event_named("large")(kind, data) or {}).get("description") == marker)
        assert slow.kinds.count("snapshot") >= 2 and fast.kinds.count("snapshot") == 1
        assert slow.bytes_read < fast.bytes_read


def test_streams_are_limited_and_a_closed_one_makes_room(start_simulator):
    simulator = start_simulator(args=["--quiet"])
    with contextlib.ExitStack() as opened:
        streams = [opened.enter_context(EventStream(simulator.control)) for _number in range(32)]
        for each in streams:
            next(each.messages())
        refused = send_request(simulator.control, "/stream", headers={})
        assert refused.status == 503 and "close one of them" in refused.json["error"] and refused.headers["Retry-After"]
        streams.pop().close()

        def is_accepted() -> bool:
            with EventStream(simulator.control) as further:
                return further.answer().status == 200

        wait_until(is_accepted, "a place for a further stream")


def test_simulator_stops_while_streams_are_open(start_process):
    simulator = start_process(args=["--quiet"])
    with EventStream(simulator.control) as reading, EventStream(simulator.control, receive_buffer=4096):
        snapshot(reading.messages())
        assert simulator.stop() == 0
