# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The HTTP contract over real sockets (docs/reference/scheduled-events.md 1; T72)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import socket
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from imds_simulator.api_versions import SCHEDULED_EVENTS_VERSIONS
from imds_simulator.protocol.rate_limit import RateLimit
from imds_simulator.scenario.files import default_scenario
from imds_simulator.server import engine
from imds_simulator.server.clock import ManualClock
from imds_simulator.testing import ControlError
from support.simulator.raw_http import EVENTS, HEADER, approve, connect, read_response, request_bytes, send_request
from support.simulator.simulations import PAIR
from support.wait import wait_until

INSTANCE = "/metadata/instance?api-version=2021-02-01"
NAME = "/metadata/instance/compute/name?api-version=2021-02-01&format=text"
VERSIONS = "/metadata/versions"
PREVIEW = "/metadata/scheduledevents?api-version=2017-03-01"
FORWARDED = {**HEADER, "X-Forwarded-For": "10.0.0.1"}
GUID = "5EED0000-0000-4000-8000-0000000000FF"


@pytest.fixture
def event(sim):
    """Return the id of an event that an approval does not start."""
    return schedule(sim)


def schedule(sim, **more):
    return sim.post("/events", {"type": "Freeze", "resources": ["vm1"], "hold": True, **more})["id"]


def is_approved(sim, event):
    return sim.get("/events/" + event)["approved"]


# -- requests


NEWEST = ["2020-07-01", "2019-08-01", "2019-04-01"]
NEWEST_OF_INSTANCE = ["2025-04-07", "2024-07-17", "2024-03-15"]
VERSION_ERROR = (
    "Bad request. api-version is invalid or was not specified in the request. "
    "For more information refer to aka.ms/azureimds"
)
NO_HEADER = {"error": "Bad request. Required metadata header not specified"}
NO_VERSION = {"error": VERSION_ERROR, "newest-versions": NEWEST}
NO_VERSION_OF_INSTANCE = {"error": VERSION_ERROR, "newest-versions": NEWEST_OF_INSTANCE}
HEADER_NEEDED = (
    *(f"/metadata/scheduledevents?api-version={each}" for each in SCHEDULED_EVENTS_VERSIONS if each != "2017-03-01"),
    *(f"/metadata/instance?api-version={each}" for each in SCHEDULED_EVENTS_VERSIONS),
    *(INSTANCE, VERSIONS, "/metadata", "/latest/", "/"),
)
# path, options of the request, status, and the whole body of an error if it is always the same
REQUESTS = [
    (EVENTS, {}, 200, None),
    ("/metadata/scheduledEvents?api-version=2020-07-01", {}, 200, None),
    ("/METADATA/SCHEDULEDEVENTS?API-VERSION=2020-07-01", {}, 200, None),
    ("/metadata/scheduledevents/?api-version=2020-07-01", {}, 200, None),
    (EVENTS + "&format=json", {}, 200, None),
    ("/metadata/scheduledevents?format=json&api-version=2020-07-01", {}, 200, None),
    ("/", {}, 404, None),
    ("/metadata?api-version=2021-02-01", {}, 404, None),
    ("/metadata//?api-version=2021-02-01", {}, 404, None),
    ("/metadata/scheduledevents//?api-version=2020-07-01", {}, 404, None),
    ("//metadata/scheduledevents?api-version=2020-07-01", {}, 404, None),
    ("/metadata//scheduledevents?api-version=2020-07-01", {}, 404, None),
    ("/metadata/%73cheduledevents?api-version=2020-07-01", {}, 404, None),
    ("/metadata/latest/scheduledevents", {}, 404, None),
    ("/metadata/scheduledevents/x?api-version=2020-07-01", {}, 404, None),
    ("/metadata/identity?api-version=2018-02-01", {}, 404, None),
    # a parameter twice
    (EVENTS + "&api-version=2020-07-01", {}, 400, None),
    (EVENTS + "&Api-Version=2019-08-01", {}, 400, None),
    (EVENTS, {"headers": {"metadata": "true"}}, 200, None),
    (EVENTS, {"headers": {"METADATA": "True"}}, 200, None),
    (EVENTS, {"headers": {"Metadata": "TRUE"}}, 200, None),
    (PREVIEW, {"headers": {}}, 200, None),
    *(
        (path, {"headers": headers}, 400, NO_HEADER)
        for path in HEADER_NEEDED
        for headers in ({}, {"Metadata": "false"}, {"Metadata": ""}, {"Metadata": "1"})
    ),
    *(
        ("/metadata/scheduledevents" + query, options, 400, NO_VERSION)
        for query in ("", *(f"?api-version={each}" for each in ("", "latest", "{latest}", "2031-01-01", "2021-12-13")))
        for options in ({}, {"method": "POST", "body": b"{}"})
    ),
    ("/metadata/instance?api-version=2020-07-01", {}, 400, NO_VERSION_OF_INSTANCE),
    ("/metadata", {}, 400, NO_VERSION_OF_INSTANCE),
    ("/metadata/", {}, 400, NO_VERSION_OF_INSTANCE),
    ("/METADATA?format=json", {}, 400, NO_VERSION_OF_INSTANCE),
    ("/metadata?api-version=1", {}, 400, NO_VERSION_OF_INSTANCE),
]


@pytest.mark.parametrize("path, options, status, error", REQUESTS)
def test_request_is_answered_with_the_document_or_an_error(vm1, path, options, status, error):
    answer = send_request(vm1, path, **options)
    assert answer.status == status
    assert set(answer.json) == set(error or (("DocumentIncarnation", "Events") if status == 200 else ("error",)))
    assert error in (None, answer.json)


@pytest.mark.parametrize(
    "method, path, allowed",
    [(method, EVENTS, "GET, POST") for method in ("PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "PROPFIND")]
    + [("POST", INSTANCE, "GET"), ("POST", VERSIONS, "GET")],
)
def test_method_of_another_kind_is_405(vm1, method, path, allowed):
    answer = send_request(vm1, path, method)
    assert (answer.status, answer.headers["Allow"]) == (405, allowed)
    assert method == "HEAD" or list(answer.json) == ["error"]


def test_forwarded_request_is_rejected_with_xff_status(sim, vm1):
    answers = [send_request(vm1, headers=FORWARDED)]
    sim.post("/knobs", {"xff_status": 403})
    answers.append(send_request(vm1, headers=FORWARDED))
    assert [each.status for each in answers] == [400, 403]
    assert all("X-Forwarded-For" in each.json["error"] for each in answers)


def test_errors_follow_the_knob_for_wording(sim, vm1):
    sim.post("/knobs", {"error_wording": "old"})
    old = "Bad request. api-version was not specified in the request. For more information refer to aka.ms/azureimds"
    assert send_request(vm1, "/metadata/scheduledevents").json == {"error": old, "newest-versions": NEWEST}
    for path in ("/metadata/instance", "/metadata/instance?api-version="):
        answer = send_request(vm1, path)
        assert (answer.status, answer.json) == (400, {"error": old, "newest-versions": NEWEST_OF_INSTANCE})
    unknown = send_request(vm1, "/metadata/instance?api-version=2017-07-01")
    assert (unknown.status, unknown.json) == (404, {"error": "Not found. Invalid version requested"})
    no_header = {"error": "Bad request: . Required metadata header not specified"}
    assert send_request(vm1, headers={}).json == no_header


def test_version_unknown_has_the_status_of_its_knob(sim, vm1):
    sim.post("/knobs", {"unknown_version_status": 404})
    unknown = send_request(vm1, "/metadata/scheduledevents?api-version=2031-01-01")
    assert (unknown.status, unknown.json) == (404, {"error": "Not found. Invalid version requested"})
    missing = send_request(vm1, "/metadata/scheduledevents")
    assert (missing.status, missing.json["newest-versions"]) == (400, NEWEST)


def test_extra_api_versions_are_accepted(sim, vm1, event):
    path = "/metadata/scheduledevents?api-version=2024-07-09"
    assert send_request(vm1, path).status == 400
    sim.post("/knobs", {"extra_api_versions": ["2024-07-09"]})
    assert send_request(vm1, path).json == send_request(vm1).json


def test_response_has_the_headers_of_imds(vm1):
    answers = [send_request(vm1) for _each in range(20)]
    headers = answers[0].headers
    assert headers["Content-Type"] == "application/json; charset=utf-8"
    assert re.fullmatch(r"IMDS/150\.870\.65\.\d+", headers["Server"])
    assert re.fullmatch(r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT", headers["Date"])
    assert int(headers["Content-Length"]) == len(answers[0].body)
    request_ids = {each.headers["x-ms-request-id"] for each in answers}
    random_uuid = r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
    assert len(request_ids) == 20 and all(re.fullmatch(random_uuid, each) for each in request_ids)


def test_document_is_compact_and_its_etag_gives_304(sim, vm1):
    tag = send_request(vm1).headers["ETag"]
    same = send_request(vm1, headers={**HEADER, "If-None-Match": tag})
    assert (same.status, same.body, same.headers["ETag"]) == (304, b"", tag)
    assert send_request(vm1, headers={**HEADER, "If-None-Match": '"other"'}).status == 200
    schedule(sim)
    changed = send_request(vm1, headers={**HEADER, "If-None-Match": tag})
    older = send_request(vm1, "/metadata/scheduledevents?api-version=2019-08-01")
    assert changed.status == 200 and len({tag, changed.headers["ETag"], older.headers["ETag"]}) == 3
    assert changed.body == json.dumps(changed.json, separators=(",", ":")).encode()
    sim.post("/knobs", {"etag": False})
    without = send_request(vm1, headers={**HEADER, "If-None-Match": changed.headers["ETag"]})
    assert without.status == 200 and "ETag" not in without.headers


def test_connection_serves_many_requests_in_order(vm1):
    with connect(vm1) as connection:
        # without waiting for an answer
        connection.sendall(request_bytes(more="") + request_bytes(NAME, more=""))
        received = b""
        while not received.endswith(b"\r\n\r\nvm1"):
            received += connection.recv(65536)
        assert b"DocumentIncarnation" in received and received.count(b"HTTP/1.1 200 OK") == 2
        connection.sendall(request_bytes(more=""))
        assert read_response(connection).status == 200


# -- approvals


def test_approval_of_one_id_is_200_and_not_visible(sim, vm1, event):
    before = send_request(vm1).json
    answer = approve(vm1, event)
    assert (answer.status, answer.body, answer.headers["Content-Length"]) == (200, b"", "0")
    assert send_request(vm1).json == before
    assert sim.get("/events/" + event)["approved_by"] == ["vm1"]


def test_approval_by_group_members_is_200_and_by_others_400(sim, event):
    assert approve(sim.endpoints["stranger"], event).status == 400
    assert not is_approved(sim, event)
    for vm in ("vm2", "vm1", "vm1"):
        assert approve(sim.endpoints[vm], event).status == 200
    assert is_approved(sim, event)


def test_approval_of_several_ids_in_any_letter_case_is_200(sim, vm1, event):
    # it is Started
    other = schedule(sim, starts="automatic_approval")
    third = schedule(sim, type="Reboot")
    assert approve(vm1, event.lower(), third, event, other).status == 200
    assert is_approved(sim, event) and is_approved(sim, third)


@pytest.mark.parametrize("status", [400, 200, 404])
def test_approval_of_unknown_id_has_unknown_event_status(sim, vm1, event, status):
    sim.post("/knobs", {"unknown_event_status": status})
    assert approve(vm1, GUID).status == status
    sim.post(f"/events/{event}/cancel")
    assert approve(vm1, event).status == status


def test_approval_of_known_and_unknown_ids_follows_partial_batch(sim, vm1, event):
    assert approve(vm1, event, GUID).status == 400
    assert not is_approved(sim, event)
    sim.post("/knobs", {"partial_batch": "apply_valid"})
    assert approve(vm1, GUID, event).status == 200
    assert is_approved(sim, event)


def test_approval_answer_is_the_document_with_post_body(sim, vm1, event):
    sim.post("/knobs", {"post_body": "document"})
    assert approve(vm1, event).json == send_request(vm1).json


@pytest.mark.parametrize("content_type", [None, "application/x-www-form-urlencoded", "application/json", "text/plain"])
def test_approval_with_any_content_type_and_further_members_is_200(sim, vm1, event, content_type):
    headers = {**HEADER, **({"Content-Type": content_type} if content_type else {})}
    body = {"DocumentIncarnation": "5", "StartRequests": [{"EventId": event, "Why": "x"}]}
    assert send_request(vm1, EVENTS, "POST", headers, json.dumps(body).encode()).status == 200
    assert is_approved(sim, event)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"null",
        b"{}",
        b"not json",
        b'{"StartRequests":',
        b'{"StartRequests":{}}',
        b'{"StartRequests":[]}',
        b'{"StartRequests":[{}]}',
        b'{"StartRequests":[{"EventId":7}]}',
        b'{"StartRequests":[{"EventId":""}]}',
        b'{"StartRequests":[{"EventId":"\\ud800"}]}',
        b'{"StartRequests":["' + GUID.encode() + b'"]}',
        b"\xff\xfe",
        b"StartRequests=x",
        b"[" * 30000,
    ],
)
def test_approval_with_malformed_body_is_400_and_changes_nothing(sim, vm1, event, body):
    before = sim.get("/events")
    answer = send_request(vm1, EVENTS, "POST", body=body)
    assert (answer.status, list(answer.json)) == (400, ["error"])
    assert sim.get("/events") == before


def test_description_with_lone_surrogate_is_escaped(sim, vm1):
    schedule(sim, description="half \ud800")
    assert send_request(vm1).json["Events"][0]["Description"] == "half \ud800"


def test_expect_100_continue_is_answered_before_the_body(vm1, event):
    body = json.dumps({"StartRequests": [{"EventId": event}]}).encode()
    head = b"POST %s HTTP/1.1\r\nHost: x\r\nMetadata: true\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n"
    with connect(vm1) as connection:
        connection.sendall(head % (EVENTS.encode(), len(body)))
        assert connection.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(body)
        assert read_response(connection).status == 200


def test_log_of_approval_truncates_long_and_many_ids(sim, vm1, event):
    last = sim.get("/log")["lines"][-1]["number"]
    approve(vm1, "x" * 60000)
    approve(vm1, *(f"y{number}" for number in range(1000)))
    long, many = sim.get(f"/log?what=approval&after={last}")["lines"]
    assert long["ids"] == ["x" * 64] and len(long["refused"]) == 200
    assert many["ids"] == [f"y{number}" for number in range(20)]


@pytest.mark.parametrize("size, status", [(65536, 200), (65537, 400)])
def test_approval_with_body_over_64_kib_is_400(vm1, event, size, status):
    body = json.dumps({"StartRequests": [{"EventId": event}]}).encode()
    assert send_request(vm1, EVENTS, "POST", body=body.ljust(size)).status == status


@pytest.mark.parametrize(
    "headers, path, status",
    [({}, EVENTS, 400), (FORWARDED, EVENTS, 400), (HEADER, "/metadata/scheduledevents", 400), ({}, PREVIEW, 200)],
)
def test_approval_obeys_the_rules_for_get(sim, vm1, event, headers, path, status):
    assert approve(vm1, event, headers=headers, path=path).status == status
    assert is_approved(sim, event) == (status == 200)


# -- rate limit and clients


def test_strict_rate_limit_of_five_per_second_then_429(start_simulator):
    sim = start_simulator("live-migration")
    sim.post("/knobs", {"strict": True})
    vm1, vm2 = sim.endpoints.values()
    statuses = [send_request(vm1, path).status for path in (EVENTS, EVENTS, VERSIONS, EVENTS, INSTANCE, EVENTS)]
    assert statuses[-1] == 429 and 429 not in statuses[:5]
    assert send_request(vm1).json == {"error": "Too many requests"}
    assert send_request(vm2).status == 200
    sim.post("/knobs", {"rate_limit": "off"})
    assert {send_request(vm1).status for _each in range(12)} == {200}


def test_rate_above_the_limit_is_answered_and_one_line_of_the_log_until_it_falls(monkeypatch):
    moments = [0.1 * number for number in range(20)] + [5 + 0.1 * number for number in range(8)]
    monkeypatch.setattr(engine, "time", SimpleNamespace(monotonic=iter(moments).__next__))

    async def request_at_each_moment():
        running = engine.Engine(default_scenario(), ManualClock(0), lambda _line: None)
        assert all(running.within_rate(running.world.vms["vm1"], "scheduledevents") for _moment in moments)
        return [(line["what"], line["vm"], line["limit"]) for line in running.activity_log.lines]

    # before Python 3.10 an engine belongs to the loop in which it is made
    assert asyncio.run(request_at_each_moment()) == [("rate-limit", "vm1", 5)] * 2


def test_strict_rate_limit_is_a_sliding_second():
    limit = RateLimit()
    allowed = {moment: limit.allows("a", 2, moment, strict=True) for moment in (0, 0.5, 0.9, 1.0, 1.1, 1.5)}
    assert allowed == {0: True, 0.5: True, 0.9: False, 1.0: True, 1.1: False, 1.5: True}
    # the second limit is one that Python cannot count to, as a value for "no limit"
    assert limit.allows("b", 2, 0.9, strict=True) and limit.allows("b", 10**20, 0.9, strict=True)


def scenario_by_source(**more):
    vms = {"vm1": {"source": "127.0.1.1"}, "vm2": {"source": "127.0.1.2"}}
    return {"groups": {name: {"kind": "standalone", "vms": {name: vm}} for name, vm in vms.items()}, **more}


@pytest.mark.parametrize("listen", ["127.0.0.1:0", "[::]:0"])
def test_shared_address_identifies_vms_by_source_address(start_process, listen):
    if "::" in listen and not (socket.has_ipv6 and os.path.exists("/proc/net/if_inet6")):
        pytest.skip("no IPv6 here")
    sim = start_process(scenario_by_source(), listen=listen)
    assert sim.endpoints["vm1"] == sim.endpoints["vm2"]
    endpoint = sim.endpoints["vm1"].replace("[::]", "127.0.0.1")
    vm1, vm2, unknown = (send_request(endpoint, NAME, source=f"127.0.1.{number}") for number in (1, 2, 3))
    assert (vm1.body, vm2.body, unknown.status) == (b"vm1", b"vm2", 404)
    assert "source address 127.0.1.3" in unknown.json["error"]
    assert [line["address"] for line in sim.get("/log?what=unknown-client")["lines"]] == ["127.0.1.3"]
    assert {each["address"] for each in sim.get("/requests")["requests"]} == {"127.0.1.1", "127.0.1.2", "127.0.1.3"}


def test_default_vm_is_used_for_unknown_sources(start_simulator, start_process):
    sim = start_process("live-migration", args=["--source", "vm2=127.0.1.2"])
    assert send_request(sim.endpoints["vm2"], NAME, source="127.0.1.2").body == b"vm2"
    assert sim.endpoints["vm1"] != sim.endpoints["vm2"]
    default = start_simulator(scenario_by_source(default_vm="vm2"))
    assert send_request(default.endpoint, NAME, source="127.0.1.9").body == b"vm2"


def test_enable_delay_delays_or_empties_the_first_answer(start_pair):
    # at this speed simulated time is not that of the clock
    sim = start_pair(knobs={"enable_delay": 119}, speed=2)
    vm1, vm2 = sim.endpoints.values()
    with ThreadPoolExecutor() as threads:
        answers = [threads.submit(send_request, vm) for vm in (vm1, vm2)]
        wait_until(lambda: sim.get("/log")["lines"])
        sim.advance(118)
        assert send_request(vm1, VERSIONS).status == 200 and not any(each.done() for each in answers)
        sim.advance(1)
        assert [each.result(60).json for each in answers] == [{"DocumentIncarnation": 1, "Events": []}] * 2
    sim.post("/knobs", {"empty_body_until_enabled": True})
    sim.post("/disable", {"group": "web"})
    empty = send_request(vm1)
    assert (empty.status, empty.body) == (200, b"")
    sim.advance(119)
    assert send_request(vm2).json["Events"] == []


# -- deleted VMs


def is_refused(endpoint):
    try:
        send_request(endpoint)
    except ConnectionRefusedError:
        return True
    except ConnectionResetError:
        pass
    return False


def end(sim, kind, *vms):
    """Let an event of ``kind`` pass from its appearance to its end."""
    event_id = sim.post("/events", {"type": kind, "resources": [*vms], "notice": 5, "started_for": 5})["id"]
    sim.advance(10)
    assert sim.get("/events/" + event_id)["status"] == "Gone"
    return event_id


def removed(sim):
    return {name: vm["removed"] for name, vm in sim.get("/state")["vms"].items()}


def test_evicted_vm_refuses_connections_and_its_group_continues(start_pair):
    sim = start_pair()
    vm1, vm2 = sim.endpoints.values()
    with connect(vm1) as connection:
        connection.sendall(request_bytes(more=""))
        assert read_response(connection).status == 200 and removed(sim) == {"vm1": False, "vm2": False}
        event_id = end(sim, "Preempt", "vm1")
        with contextlib.suppress(ConnectionResetError):
            assert connection.recv(1) == b""
    assert is_refused(vm1) and removed(sim) == {"vm1": True, "vm2": False}
    assert [(line["vm"], line["id"]) for line in sim.get("/log?what=removed")["lines"]] == [("vm1", event_id)]
    assert send_request(vm2).json["Events"] == []
    sim.post("/events", {"type": "Reboot", "resources": ["vm2"], "name": "other"})
    with pytest.raises(ControlError, match="event other: Azure has deleted vm1; name another VM") as refused:
        sim.post("/events/other/approve", {"as": "vm1"})
    assert refused.value.status == 409 and sim.get("/events/other")["approved_by"] == []
    sim.post("/faults", {"kind": "refuse", "vm": "vm1"})
    sim.delete("/faults")
    assert is_refused(vm1) and send_request(vm2).status == 200


def test_deleted_vm_at_a_shared_address_is_reset_and_the_last_one_closes_it(start_simulator):
    sim = start_simulator(scenario_by_source())
    endpoint = sim.endpoints["vm1"]
    end(sim, "Terminate", "vm1")
    with pytest.raises(ConnectionResetError):
        send_request(endpoint, NAME, source="127.0.1.1")
    assert send_request(endpoint, NAME, source="127.0.1.2").body == b"vm2"
    assert sim.get("/requests?vm=vm1")["requests"][-1]["status"] == 0
    end(sim, "Terminate", "vm2")
    assert is_refused(endpoint)


def test_evicted_vm_refuses_connections_with_the_real_clock(start_simulator):
    events = [{"type": "Preempt", "resources": ["vm1"], "notice": 1, "started_for": 1}]
    sim = start_simulator({"groups": PAIR, "events": events, "speed": 20}, clock="real")
    wait_until(lambda: is_refused(sim.endpoints["vm1"]))
    assert send_request(sim.endpoints["vm2"]).status == 200
