# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Every fault, seen from the client (docs/reference/scheduled-events.md 1.6; T47, T49, T52 to T54, T56, T62)."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

import pytest

from support import simulator_process
from support.simulator.raw_http import (
    EVENTS,
    HEADER,
    approve,
    connect,
    read_response,
    request_bytes,
    send_raw,
    send_request,
)


@pytest.fixture
def vm1(frozen_simulator):
    return frozen_simulator.endpoints["vm1"]


def inject(sim, kind, **more):
    return sim.post("/faults", {"kind": kind, **more})


def read_until_end(endpoint, data=b""):
    """Return the bytes before the end of the connection, and whether it was reset."""
    received = b""
    with connect(endpoint) as connection:
        connection.sendall(data or request_bytes())
        try:
            while True:
                part = connection.recv(65536)
                if not part:
                    return received, False
                received += part
        except ConnectionResetError:
            return received, True


@pytest.mark.parametrize(
    "kind, status, body",
    [
        ("bad-request", 400, b'{"error":"Bad Request"}'),
        ("not-found", 404, b'{"error":"Not Found"}'),
        ("gone", 410, b'{"error":"Gone. The service is updating"}'),
        ("too-many-requests", 429, b'{"error":"Too many requests"}'),
        ("server-error", 500, b'{"error":"Internal server error"}'),
        ("unavailable", 503, b'{"error":"Service Unavailable"}'),
        ("empty", 200, b""),
        ("null", 200, b"null"),
        ("list", 200, b"[]"),
        ("object", 200, b"{}"),
        ("events-null", 200, b'{"DocumentIncarnation":1,"Events":null}'),
        ("not-json", 200, b"Service is starting"),
    ],
)
def test_fault_has_its_status_and_body(frozen_simulator, vm1, kind, status, body):
    inject(frozen_simulator, kind)
    answer = send_request(vm1)
    assert (answer.status, answer.body) == (status, body)
    assert int(answer.headers["Content-Length"]) == len(body)


@pytest.mark.parametrize("kind, status", [("html", 200), ("forbidden-html", 403)])
def test_fault_with_html_has_an_html_body(frozen_simulator, vm1, kind, status):
    inject(frozen_simulator, kind)
    answer = send_request(vm1)
    assert (answer.status, answer.headers["Content-Type"]) == (status, "text/html") and answer.body.startswith(
        b"<html>"
    )


def test_fault_status_sends_given_body_and_headers(frozen_simulator, vm1):
    inject(
        frozen_simulator,
        "status",
        status=418,
        body="tea",
        content_type="text/plain",
        headers={"X-Pot": "1"},
        retry_after="2m",
    )
    answer = send_request(vm1)
    assert (answer.status, answer.body, answer.headers["X-Pot"], answer.headers["Retry-After"]) == (
        418,
        b"tea",
        "1",
        "120",
    )


def test_fault_headers_replace_the_normal_headers(frozen_simulator, vm1):
    inject(frozen_simulator, "empty", headers={"server": "nginx", "CONTENT-TYPE": "text/plain", "Date": "never"})
    headers = send_request(vm1).headers
    assert [headers.get_all(name) for name in ("Server", "Content-Type", "Date")] == [
        ["nginx"],
        ["text/plain"],
        ["never"],
    ]


def test_fault_retry_after_can_be_a_date(frozen_simulator, vm1):
    inject(frozen_simulator, "too-many-requests", retry_after=30, retry_after_format="date")
    answer = send_request(vm1)
    later = parsedate_to_datetime(answer.headers["Retry-After"]) - parsedate_to_datetime(answer.headers["Date"])
    assert later.total_seconds() == 30


def test_fault_body_base64_sends_the_bytes(frozen_simulator, vm1):
    inject(frozen_simulator, "body", body_base64="AP8=")
    assert send_request(vm1).body == b"\x00\xff"


def test_fault_redirect_sends_location(frozen_simulator, vm1):
    inject(frozen_simulator, "redirect", location="http://127.0.0.1:1/elsewhere")
    answer = send_request(vm1)
    assert (answer.status, answer.headers["Location"]) == (302, "http://127.0.0.1:1/elsewhere")


def test_fault_of_the_body_changes_the_normal_body(frozen_simulator, vm1):
    true = send_request(vm1).body
    spoilt = {}
    for kind, more in (("bom", {}), ("invalid-utf8", {}), ("cut-json", {}), ("oversized", {"size": 100000})):
        inject(frozen_simulator, kind, **more)
        spoilt[kind] = send_request(vm1).body
        frozen_simulator.delete("/faults")
    assert spoilt["bom"] == b"\xef\xbb\xbf" + true
    with pytest.raises(UnicodeDecodeError):
        spoilt["invalid-utf8"].decode()
    assert spoilt["cut-json"] == true[: len(true) // 2]
    assert len(spoilt["oversized"]) == 100000 and json.loads(spoilt["oversized"]) == json.loads(true)


def test_fault_of_the_body_with_matching_etag_still_sends_a_body(frozen_simulator, vm1):
    known = {**HEADER, "If-None-Match": send_request(vm1).headers["ETag"]}
    assert send_request(vm1, headers=known).status == 304
    inject(frozen_simulator, "cut-json")
    assert (send_request(vm1, headers=known).status, len(send_request(vm1, headers=known).body) > 0) == (200, True)


def test_fault_truncated_closes_before_content_length(frozen_simulator, vm1):
    true = send_request(vm1).body
    inject(frozen_simulator, "truncated", keep=7)
    head, _blank, body = send_raw(vm1).partition(b"\r\n\r\n")
    assert b"Content-Length: %d\r\n" % len(true) in head + b"\r\n" and body == true[:7]
    with pytest.raises(http.client.IncompleteRead):
        send_request(vm1)


def test_fault_truncated_chunked_closes_inside_a_chunk(frozen_simulator, vm1):
    true = send_request(vm1).body
    inject(frozen_simulator, "truncated-chunked")
    head, _blank, body = send_raw(vm1).partition(b"\r\n\r\n")
    assert b"Transfer-Encoding: chunked" in head and b"Content-Length" not in head
    assert body == b"%x\r\n" % len(true) + true[: len(true) // 2]
    with pytest.raises(http.client.IncompleteRead):
        send_request(vm1)


@pytest.mark.parametrize("kind, arrives", [("trickle", b"\r\n\r\n"), ("trickle-header", b"HTTP")])
def test_fault_trickle_sends_a_few_bytes_at_a_time(frozen_simulator, vm1, kind, arrives):
    inject(frozen_simulator, kind, bytes_per_second=40)
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


def test_fault_trickle_sends_the_complete_answer(frozen_simulator, vm1):
    true = send_request(vm1).body
    inject(frozen_simulator, "trickle", bytes_per_second=200)
    assert send_request(vm1).body == true


def test_fault_hang_sends_nothing_until_it_is_cleared(frozen_simulator, vm1):
    fault = inject(frozen_simulator, "hang")
    with connect(vm1) as connection:
        connection.sendall(request_bytes())
        connection.settimeout(0.3)
        with pytest.raises(socket.timeout):
            connection.recv(1)
        connection.settimeout(60)
        frozen_simulator.delete(f"/faults/{fault['number']}")
        assert connection.recv(1) == b""


def test_fault_hang_ends_with_its_window(frozen_simulator, vm1):
    inject(frozen_simulator, "hang", **{"for": 30})
    with connect(vm1) as connection:
        connection.sendall(request_bytes())
        frozen_simulator.advance(30)
        assert connection.recv(1) == b""
    assert send_request(vm1).status == 200


def test_fault_hang_ignores_clients_that_disconnect(frozen_simulator, vm1):
    inject(frozen_simulator, "hang", vm="vm1")
    for _each in range(20):
        with connect(vm1) as connection:
            connection.sendall(request_bytes())
    assert send_request(frozen_simulator.endpoints["vm2"]).status == 200


def test_fault_delay_waits_for_simulated_time(frozen_simulator, vm1):
    inject(frozen_simulator, "slow-first-answer", delay="2m")
    got = []
    thread = threading.Thread(target=lambda: got.append(send_request(vm1).status))
    thread.start()
    wait_until(lambda: any(fault["seen"] for fault in frozen_simulator.get("/faults")["faults"]))
    assert send_request(vm1).status == 200  # the second request is not slow
    frozen_simulator.advance(119)
    assert got == []
    frozen_simulator.advance(1)
    thread.join(60)
    assert got == [200]


def test_fault_reset_sends_rst(frozen_simulator, vm1):
    inject(frozen_simulator, "reset")
    assert read_until_end(vm1) == (b"", True)


def test_fault_refuse_closes_the_socket_for_its_window(frozen_simulator, vm1):
    with connect(vm1) as kept:
        kept.sendall(request_bytes(more=""))
        assert read_response(kept)
        inject(frozen_simulator, "refuse", vm="vm1", **{"for": 60})
        wait_until(lambda: is_refused(vm1))
        assert kept.recv(1) == b""  # kept-alive connections end as well
    assert send_request(frozen_simulator.endpoints["vm2"]).status == 200
    frozen_simulator.advance(60)
    wait_until(lambda: not is_refused(vm1))
    assert send_request(vm1).status == 200


def is_refused(endpoint):
    try:
        connect(endpoint).close()
    except ConnectionRefusedError:
        return True
    return False


def wait_until(condition, seconds=60.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "the condition did not become true"
        time.sleep(0.01)


def test_fault_refuse_without_vm_affects_all(frozen_simulator, vm1):
    fault = inject(frozen_simulator, "refuse")
    wait_until(lambda: is_refused(vm1) and is_refused(frozen_simulator.endpoints["vm2"]))
    frozen_simulator.delete(f"/faults/{fault['number']}")
    wait_until(lambda: not is_refused(vm1))


def test_fault_lost_request_does_not_act_and_lost_answer_does(frozen_simulator, vm1):
    event_id = frozen_simulator.post("/events", {"type": "Freeze", "resources": ["vm1"], "hold": True})["id"]
    for kind, approved in (("lost-request", False), ("lost-answer", True)):
        inject(frozen_simulator, kind, method="POST", requests=1)
        with pytest.raises((ConnectionResetError, http.client.RemoteDisconnected)):
            approve(vm1, event_id)
        assert frozen_simulator.get("/events/" + event_id)["approved"] is approved
    assert approve(vm1, event_id).status == 200


@pytest.mark.parametrize("skew, seconds", [("20m", 1200), ("-20m", -1200), (-5, -5)])
def test_fault_date_skew_changes_the_date_header_only(frozen_simulator, vm1, skew, seconds):
    true = parsedate_to_datetime(send_request(vm1).headers["Date"])
    inject(frozen_simulator, "date-skew", skew=skew)
    answer = send_request(vm1)
    assert (parsedate_to_datetime(answer.headers["Date"]) - true).total_seconds() == seconds
    assert answer.json["Events"] == []


def test_fault_close_idle_closes_a_kept_connection(frozen_simulator, vm1):
    inject(frozen_simulator, "close-idle", idle=90)
    with connect(vm1) as connection:
        connection.sendall(request_bytes(more=""))
        answer = read_response(connection)
        assert answer.startswith(b"HTTP/1.1 200") and b"Connection: close" not in answer
        frozen_simulator.advance(89)
        connection.settimeout(0.1)
        with pytest.raises(socket.timeout):
            connection.recv(1)
        connection.settimeout(60)
        frozen_simulator.advance(1)
        assert connection.recv(1) == b"", "idle goes by simulated time"


def test_fault_of_one_route_and_vm_leaves_others_alone(frozen_simulator, vm1):
    inject(frozen_simulator, "unavailable", route="scheduledevents", vm="vm1")
    assert send_request(vm1).status == 503
    assert send_request(vm1, "/metadata/versions").status == 200
    assert send_request(frozen_simulator.endpoints["vm2"]).status == 200


def test_fault_refuse_for_a_shared_address_is_rejected(start_simulator):
    scenario = {"groups": {"web": {"kind": "standalone", "vms": {"vm1": {"source": "127.0.0.1"}}}}}
    sim = start_simulator(scenario)
    with pytest.raises(simulator_process.ControlError, match="use reset"):
        inject(sim, "refuse", vm="vm1")
    assert inject(sim, "refuse", **{"for": 1})["active"]


def test_fault_is_logged_with_the_request(frozen_simulator, vm1):
    last = frozen_simulator.get("/requests")["requests"][-1]["number"]
    inject(frozen_simulator, "unavailable", requests=1)
    inject(frozen_simulator, "reset", requests=2)
    send_request(vm1)
    read_until_end(vm1)
    logged = frozen_simulator.get(f"/requests?after={last}")["requests"]
    assert [(each["status"], each["fault"]) for each in logged] == [(503, "unavailable"), (0, "reset")]


def test_fault_status_for_a_post_does_not_approve(frozen_simulator, vm1):
    event_id = frozen_simulator.post("/events", {"type": "Freeze", "resources": ["vm1"], "hold": True})["id"]
    for kind, status in (("server-error", 500), ("unavailable", 503), ("too-many-requests", 429), ("gone", 410)):
        inject(frozen_simulator, kind, method="POST", requests=1)
        assert approve(vm1, event_id).status == status
    assert not frozen_simulator.get("/events/" + event_id)["approved"]


def test_fault_status_keeps_the_connection_open(frozen_simulator, vm1):
    inject(frozen_simulator, "unavailable", requests=1)
    connection = http.client.HTTPConnection(urlsplit(vm1).netloc, timeout=60)
    statuses = []
    for _each in range(2):
        connection.request("GET", EVENTS, headers=HEADER)
        answer = connection.getresponse()
        answer.read()
        statuses.append(answer.status)
    connection.close()
    assert statuses == [503, 200]


def test_fault_refuse_is_in_effect_when_the_control_api_answers(frozen_simulator, vm1):
    for _time in range(20):
        inject(frozen_simulator, "refuse")
        with pytest.raises(ConnectionRefusedError):
            connect(vm1)
        frozen_simulator.delete("/faults")
        assert send_request(vm1).status == 200


def test_fault_refuse_ends_when_the_clock_is_moved_past_it(frozen_simulator, vm1):
    inject(frozen_simulator, "refuse", **{"for": 30})
    frozen_simulator.advance(31)
    assert send_request(vm1).status == 200
