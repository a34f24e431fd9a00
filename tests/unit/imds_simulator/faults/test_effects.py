# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Every kind of fault, seen from a client (docs/reference/scheduled-events.md 1.6; T47, T49, T52 to T54, T56, T62)."""

from __future__ import annotations

import http.client
import json
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from email.utils import parsedate_to_datetime

import pytest

from support.simulator.raw_http import (
    HEADER,
    approve,
    connect,
    read_response,
    request_bytes,
    send_raw,
    send_request,
    send_requests,
)
from support.simulator.simulations import PAIR
from support.wait import wait_until

JSON = {"Content-Type": "application/json; charset=utf-8"}
HTML = b"<html><head><title>Sign in</title></head><body><h1>Proxy</h1></body></html>"


@pytest.fixture
def inject(sim):
    return lambda kind, **more: sim.post("/faults", {"kind": kind, **more})


TEA = {"status": 418, "body": "tea", "content_type": "text/plain", "headers": {"X-Pot": 1}, "retry_after": "2m"}
# these replace those of the service, in any letter case
OWN_HEADERS = {"headers": {"server": "x", "CONTENT-TYPE": "y", "Date": "z"}}


@pytest.mark.parametrize(
    "kind, options, status, body, headers",
    [
        ("bad-request", {}, 400, b'{"error":"Bad Request"}', JSON),
        ("not-found", {}, 404, b'{"error":"Not Found"}', JSON),
        ("gone", {}, 410, b'{"error":"Gone. The service is updating"}', JSON),
        ("too-many-requests", {}, 429, b'{"error":"Too many requests"}', JSON),
        ("server-error", {}, 500, b'{"error":"Internal server error"}', JSON),
        ("unavailable", {}, 503, b'{"error":"Service Unavailable"}', JSON),
        ("forbidden-html", {}, 403, HTML, {"Content-Type": "text/html"}),
        ("html", {}, 200, HTML, {"Content-Type": "text/html"}),
        ("not-json", {}, 200, b"Service is starting", {"Content-Type": "text/plain"}),
        ("empty", {}, 200, b"", JSON),
        ("null", {}, 200, b"null", JSON),
        ("list", {}, 200, b"[]", JSON),
        ("object", {}, 200, b"{}", JSON),
        ("events-null", {}, 200, b'{"DocumentIncarnation":1,"Events":null}', JSON),
        ("status", TEA, 418, b"tea", {"Content-Type": "text/plain", "X-Pot": "1", "Retry-After": "120"}),
        ("empty", OWN_HEADERS, 200, b"", {"Server": "x", "Date": "z"}),
        ("body", {"body_base64": "AP8="}, 200, b"\x00\xff", {}),
        # half of a surrogate pair, which JSON may have, is escaped
        ("body", {"body": "x\ud800"}, 200, b"x\\ud800", {}),
        ("redirect", {"location": "http://127.0.0.1:1/a"}, 302, b"", {"Location": "http://127.0.0.1:1/a"}),
    ],
)
def test_fault_has_its_status_body_and_headers_or_those_that_are_given(
    inject, vm1, kind, options, status, body, headers
):
    inject(kind, **options)
    answer = send_request(vm1)
    assert (answer.status, answer.body) == (status, body)
    expected = {**headers, "Content-Length": str(len(body))}
    assert {name: answer.headers.get_all(name) for name in expected} == {name: [expected[name]] for name in expected}


def test_fault_retry_after_can_be_a_date(inject, vm1):
    inject("too-many-requests", retry_after=30, retry_after_format="date")
    answer = send_request(vm1)
    later = parsedate_to_datetime(answer.headers["Retry-After"]) - parsedate_to_datetime(answer.headers["Date"])
    assert later.total_seconds() == 30


def test_fault_of_the_body_changes_the_normal_body_also_with_an_etag(sim, inject, vm1):
    true = send_request(vm1)
    known = {**HEADER, "If-None-Match": true.headers["ETag"]}
    assert send_request(vm1, headers=known).status == 304
    changed = {}
    for kind, more in (("bom", {}), ("invalid-utf8", {}), ("cut-json", {}), ("oversized", {"size": 100000})):
        inject(kind, **more)
        changed[kind] = send_request(vm1, headers=known).body
        sim.delete("/faults")
    assert changed["bom"] == b"\xef\xbb\xbf" + true.body
    with pytest.raises(UnicodeDecodeError):
        changed["invalid-utf8"].decode()
    assert changed["cut-json"] == true.body[: len(true.body) // 2]
    assert len(changed["oversized"]) == 100000 and json.loads(changed["oversized"]) == true.json


def test_fault_truncated_closes_before_the_end(sim, inject, vm1):
    true = send_request(vm1).body
    for kind, more, framing, sent in (
        ("truncated", {"keep": 7}, b"Content-Length: %d\r\n" % len(true), true[:7]),
        ("truncated-chunked", {}, b"Transfer-Encoding: chunked\r\n", b"%x\r\n" % len(true) + true[: len(true) // 2]),
    ):
        inject(kind, **more)
        head, _blank, body = send_raw(vm1).partition(b"\r\n\r\n")
        assert framing in head + b"\r\n" and body == sent
        assert (head + b"\r\n").count(b"Content-Length") == framing.count(b"Content-Length")
        with pytest.raises(http.client.IncompleteRead):
            send_request(vm1)
        sim.delete("/faults")


@pytest.mark.parametrize("kind, arrives", [("trickle", b"\r\n\r\n"), ("trickle-header", b"HTTP")])
def test_fault_trickle_sends_a_few_bytes_at_a_time(sim, inject, vm1, kind, arrives):
    inject(kind, bytes_per_second=40)
    with connect(vm1) as connection:
        connection.sendall(request_bytes())
        began, received = time.monotonic(), b""
        while arrives not in received:
            received += connection.recv(65536)
        before = len(received)
        connection.settimeout(0.25)
        while time.monotonic() - began < 0.5:
            try:
                received += connection.recv(65536)
            except TimeoutError:
                break
    # the first bytes come immediately, then some every 0.1 s
    assert before <= len(received) <= before + 4 + 40 * (time.monotonic() - began)
    sim.delete("/faults")
    true = send_request(vm1).body
    inject(kind, bytes_per_second=1000)
    assert send_request(vm1).body == true


def test_fault_hang_ends_when_it_is_cleared_or_over(sim, inject, vm1):
    for window, end in (
        ({}, lambda fault: sim.delete(f"/faults/{fault['number']}")),
        ({"for": 30}, lambda fault: sim.advance(30)),
    ):
        fault = inject("hang", **window)
        with connect(vm1, 0.3) as connection:
            connection.sendall(request_bytes())
            with pytest.raises(socket.timeout):
                connection.recv(1)
            connection.settimeout(60)
            end(fault)
            assert connection.recv(1) == b""
        assert send_request(vm1).status == 200


def test_fault_hang_ignores_clients_that_disconnect_and_other_requests(sim, inject, vm1):
    inject("hang", vm="vm1", route="scheduledevents")
    for _each in range(20):
        with connect(vm1) as connection:
            connection.sendall(request_bytes())
    assert send_request(vm1, "/metadata/versions").status == 200
    assert send_request(sim.endpoints["vm2"]).status == 200


@pytest.mark.parametrize("kind, window", [("slow-first-answer", {}), ("delay", {"requests": 1})])
def test_fault_delay_waits_for_simulated_time(sim, inject, vm1, kind, window):
    inject(kind, delay="2m", **window)
    with ThreadPoolExecutor() as threads:
        slow = threads.submit(send_request, vm1)
        wait_until(lambda: any(fault["seen"] for fault in sim.get("/faults")["faults"]))
        assert send_request(vm1).status == 200  # the second request is not slow
        sim.advance(119)
        assert not slow.done()
        sim.advance(1)
        assert slow.result(60).status == 200


def test_service_acts_before_a_lost_answer_only(sim, inject, vm1):
    event_id = sim.post("/events", {"type": "Freeze", "resources": ["vm1"], "hold": True})["id"]
    inject("server-error", method="POST", requests=1)
    assert approve(vm1, event_id).status == 500
    for kind, approved in (("lost-request", False), ("lost-answer", True)):
        inject(kind, method="POST", requests=1)
        with pytest.raises((ConnectionResetError, http.client.RemoteDisconnected)):
            approve(vm1, event_id)
        assert sim.get("/events/" + event_id)["approved"] is approved
    assert approve(vm1, event_id).status == 200


@pytest.mark.parametrize("skew, seconds", [("20m", 1200), ("-20m", -1200), (-5, -5)])
def test_fault_date_skew_changes_the_date_header_only(inject, vm1, skew, seconds):
    true = send_request(vm1)
    inject("date-skew", skew=skew)
    answer = send_request(vm1)
    dates = [parsedate_to_datetime(each.headers["Date"]) for each in (true, answer)]
    assert ((dates[1] - dates[0]).total_seconds(), answer.body) == (seconds, true.body)


def test_fault_close_idle_closes_a_kept_connection(sim, inject, vm1):
    inject("close-idle", idle=90)
    with connect(vm1) as connection:
        connection.sendall(request_bytes(more=""))
        answer = read_response(connection)
        assert answer.status == 200 and answer.headers["Connection"] != "close"
        sim.advance(89)
        connection.settimeout(0.1)
        with pytest.raises(socket.timeout):
            connection.recv(1)
        connection.settimeout(60)
        sim.advance(1)
        assert connection.recv(1) == b"", "idle goes by simulated time"


def test_fault_refuse_closes_the_socket_for_its_window(sim, inject, vm1):
    with connect(vm1) as kept:
        kept.sendall(request_bytes(more=""))
        assert read_response(kept).status == 200
        inject("refuse", vm="vm1", **{"for": 60})
        with pytest.raises(ConnectionRefusedError):
            connect(vm1)
        assert kept.recv(1) == b""  # kept-alive connections end as well
    assert send_request(sim.endpoints["vm2"]).status == 200
    sim.advance(60)
    assert send_request(vm1).status == 200


def test_fault_refuse_is_in_effect_when_the_control_api_answers(sim, inject):
    for _time in range(20):
        inject("refuse")
        for vm in ("vm1", "vm2"):
            with pytest.raises(ConnectionRefusedError):
                connect(sim.endpoints[vm])
        sim.delete("/faults")
        assert send_request(sim.endpoints["vm1"]).status == 200


def test_fault_refuse_begins_at_its_time_with_the_real_clock(start_simulator):
    scenario = {"groups": PAIR, "faults": [{"kind": "refuse", "vm": "vm1", "from": "300ms"}]}
    sim = start_simulator(scenario, clock="real")
    wait_until(lambda: sim.log(what="refusing"))


def test_fault_status_keeps_the_connection_open(inject, vm1):
    inject("unavailable", requests=1)
    assert [each.status for each in send_requests(vm1, 2)] == [503, 200]


def test_fault_reset_sends_rst_and_faults_are_logged_with_their_requests(sim, inject, vm1):
    last = sim.get("/requests")["requests"][-1]["number"]
    inject("unavailable", requests=1)
    inject("reset", requests=2)
    assert send_request(vm1).status == 503
    with pytest.raises(ConnectionResetError):
        send_raw(vm1)
    logged = sim.get(f"/requests?after={last}")["requests"]
    assert [(each["status"], each["fault"]) for each in logged] == [(503, "unavailable"), (0, "reset")]
