# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Requests that IMDS refuses: what they count for, and their answers; the log of the first view of an event.

See docs/reference/scheduled-events.md 1.6.12, 1.7.5, 4.1.8.
"""

from __future__ import annotations

from support.simulator.raw_http import EVENTS, HEADER, approve, send_raw, send_request
from support.simulator.simulations import PAIR

OLD = "/metadata/scheduledevents?api-version=2017-03-01"
DAY = 86400
OTHER_CLOUDS = ("/latest/meta-data/", "/computeMetadata/v1/", "/openstack/latest/", "/hetzner/v1/metadata")
REFUSED = [
    ("GET", EVENTS, {}, None),
    ("GET", EVENTS, {**HEADER, "X-Forwarded-For": "10.0.0.1"}, None),
    ("GET", "/metadata/scheduledevents", HEADER, None),
    ("GET", EVENTS + "&api-version=2020-07-01", HEADER, None),
    ("GET", EVENTS.replace("scheduledevents", "scheduledevents/x"), HEADER, None),
    ("PUT", EVENTS, HEADER, b"{}"),
    ("POST", EVENTS, {}, b'{"StartRequests":[{"EventId":"x"}]}'),
    ("POST", EVENTS, HEADER, b"not json"),
    ("POST", EVENTS, HEADER, b'{"StartRequests":[{"EventId":"5EED0000-0000-4000-8000-0000000000FF"}]}'),
]


def send_refused(endpoint):
    for method, path, headers, body in REFUSED:
        assert send_request(endpoint, path, method, headers, body).status in (400, 404, 405)
    assert send_raw(endpoint, b"nonsense\r\n\r\n").startswith(b"HTTP/1.0 400 ")


def test_probe_of_missing_route_does_not_count_for_the_rate_limit(start_pair):
    endpoint = start_pair(knobs={"strict": True}).endpoint
    assert {send_request(endpoint, path).status for path in OTHER_CLOUDS * 3} == {404}
    assert [send_request(endpoint).status for _each in range(6)] == [200] * 5 + [429]


def test_refused_request_neither_begins_time_nor_enables_the_service(start_pair):
    sim = start_pair(begin="first_request", events=[{"at": 60, "type": "Reboot", "resources": ["vm1"]}])
    vm1, vm2 = sim.endpoints.values()
    send_refused(vm1)
    assert send_request(vm1, "/metadata/instance?api-version=2021-02-01").status == 200
    sim.advance(3600)
    assert sim.get("/state")["epoch"] is None and sim.get("/log?what=enabled")["lines"] == []
    assert send_request(vm2).json["Events"] == []
    assert sim.get("/state")["epoch"] is not None
    sim.advance(60)
    assert len(send_request(vm2).json["Events"]) == 1


def test_refused_request_does_not_keep_the_service_enabled_and_an_approval_does(start_pair):
    sim = start_pair()
    endpoint = sim.endpoints["vm1"]
    event_id = sim.post("/events", {"type": "Reboot", "resources": ["vm1"], "notice": "5d", "hold": True})["id"]
    for send in (send_request, lambda endpoint: approve(endpoint, event_id), send_request):
        assert send(endpoint).status == 200
        sim.advance(DAY - 10)
    send_refused(endpoint)
    assert len(sim.get("/log?what=enabled")["lines"]) == 1
    sim.advance(20)
    assert send_request(endpoint).status == 200
    assert len(sim.get("/log?what=enabled")["lines"]) == 2


MALFORMED = [
    b"nonsense\r\n\r\n",
    # a browser that is sent to https://
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 TLS \r\n\r\n",
    b"GET /metadata HTTP/1.1\r\nno colon\r\n\r\n",
    b"GET /metadata HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
    b"GET /metadata/scheduledevents?x=" + b"y" * 20000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET /metadata HTTP/1.1\r\nHost: x\r\nMetadata: " + b"y" * 20000 + b"\r\n\r\n",
]
UNREADABLE = [
    b"Content-Encoding: gzip\r\nContent-Length: 4\r\n\r\nabcd",
    b"Connection: close\r\nContent-Encoding: deflate\r\nContent-Length: 0\r\n\r\n",
    b"Transfer-Encoding: chunked\r\n\r\nx\r\n",
]


def test_malformed_request_is_400_and_closes_its_connection(start_process):
    sim = start_process({"groups": PAIR}, args=["--knob", "rate_limit=off"])
    for data in MALFORMED:
        for url in (sim.endpoints["vm1"], sim.control):
            # returns when the simulator has closed the connection
            assert send_raw(url, data).split()[1] == b"400", data[:60]
    for rest in UNREADABLE:
        data = b"POST %s HTTP/1.1\r\nHost: x\r\nMetadata: true\r\n%s" % (EVENTS.encode(), rest)
        assert send_raw(sim.endpoints["vm1"], data).split()[1] == b"400"
    assert send_request(sim.endpoints["vm1"]).status == 200
    sim.stop()
    assert "Traceback" not in "".join(sim.output) and "Error" not in "".join(sim.output)


# -- first views


def seen(sim):
    return [(line["vm"], line["event"]) for line in sim.get("/log?what=seen")["lines"]]


def schedule(sim, name, kind="Reboot"):
    sim.post("/events", {"name": name, "type": kind, "resources": ["vm1"], "hold": True})


def test_first_view_is_logged_once_for_each_vm_and_event(start_pair):
    sim = start_pair()
    vm1, vm2 = sim.endpoints.values()
    send_request(vm1)
    schedule(sim, "one")
    assert seen(sim) == []
    for _again in range(3):
        send_request(vm1)
    schedule(sim, "two")
    send_request(vm1)
    send_request(vm2)
    sim.post("/events/one/change", {"description": "changed"})
    send_request(vm1)
    assert seen(sim) == [("vm1", "one"), ("vm1", "two"), ("vm2", "one"), ("vm2", "two")]
    sim.post("/events/one/complete")
    schedule(sim, "three")
    send_request(vm1)
    assert seen(sim)[4:] == [("vm1", "three")]


def test_first_view_needs_a_whole_document_that_lists_the_event(start_pair):
    sim = start_pair()
    vm1 = sim.endpoints["vm1"]
    schedule(sim, "one", "Preempt")
    # the version does not have this type
    assert send_request(vm1, OLD).json["Events"] == []
    for kind in ("unavailable", "cut-json"):
        sim.post("/faults", {"kind": kind})
        send_request(vm1)
        sim.delete("/faults")
    assert seen(sim) == []
    sim.post("/faults", {"kind": "date-skew", "skew": "1h"})
    send_request(vm1)
    assert seen(sim) == [("vm1", "one")]
