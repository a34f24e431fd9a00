# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Every fault as it looks on the wire (T47, T49, T52 to T54, T56, T62; docs/reference/scheduled-events.md 1.6)."""

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
from support.simulator.raw_http import EVENTS, HEADER, approve, ask, connected, one_answer, raw, request_bytes


@pytest.fixture
def vm1(still):
    return still.endpoints["vm1"]


def inject(sim, kind, **more):
    return sim.post("/faults", {"kind": kind, **more})


def broken(endpoint, data=b""):
    """What arrived before the connection broke, and whether it was reset."""
    received = b""
    with connected(endpoint) as connection:
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
def test_statuses_and_bodies(still, vm1, kind, status, body):
    inject(still, kind)
    answer = ask(vm1)
    assert (answer.status, answer.body) == (status, body)
    assert int(answer.headers["Content-Length"]) == len(body)


@pytest.mark.parametrize("kind, status", [("html", 200), ("forbidden-html", 403)])
def test_html(still, vm1, kind, status):
    inject(still, kind)
    answer = ask(vm1)
    assert (answer.status, answer.headers["Content-Type"]) == (status, "text/html") and answer.body.startswith(
        b"<html>"
    )


def test_any_status_with_any_body_and_headers(still, vm1):
    inject(still, "status", status=418, body="tea", content_type="text/plain", headers={"X-Pot": "1"}, retry_after="2m")
    answer = ask(vm1)
    assert (answer.status, answer.body, answer.headers["X-Pot"], answer.headers["Retry-After"]) == (
        418,
        b"tea",
        "1",
        "120",
    )


def test_headers_of_a_fault_replace_those_of_the_service(still, vm1):
    inject(still, "empty", headers={"server": "nginx", "CONTENT-TYPE": "text/plain", "Date": "never"})
    headers = ask(vm1).headers
    assert [headers.get_all(name) for name in ("Server", "Content-Type", "Date")] == [
        ["nginx"],
        ["text/plain"],
        ["never"],
    ]


def test_retry_after_as_date(still, vm1):
    inject(still, "too-many-requests", retry_after=30, retry_after_format="date")
    answer = ask(vm1)
    later = parsedate_to_datetime(answer.headers["Retry-After"]) - parsedate_to_datetime(answer.headers["Date"])
    assert later.total_seconds() == 30


def test_raw_bytes_as_body(still, vm1):
    inject(still, "body", body_base64="AP8=")
    assert ask(vm1).body == b"\x00\xff"


def test_redirect(still, vm1):
    inject(still, "redirect", location="http://127.0.0.1:1/elsewhere")
    answer = ask(vm1)
    assert (answer.status, answer.headers["Location"]) == (302, "http://127.0.0.1:1/elsewhere")


def test_bom_invalid_utf8_cut_json_and_oversized_spoil_the_true_body(still, vm1):
    true = ask(vm1).body
    spoilt = {}
    for kind, more in (("bom", {}), ("invalid-utf8", {}), ("cut-json", {}), ("oversized", {"size": 100000})):
        inject(still, kind, **more)
        spoilt[kind] = ask(vm1).body
        still.delete("/faults")
    assert spoilt["bom"] == b"\xef\xbb\xbf" + true
    with pytest.raises(UnicodeDecodeError):
        spoilt["invalid-utf8"].decode()
    assert spoilt["cut-json"] == true[: len(true) // 2]
    assert len(spoilt["oversized"]) == 100000 and json.loads(spoilt["oversized"]) == json.loads(true)


def test_a_fault_of_the_body_spoils_a_body_even_for_a_client_that_knows_the_document(still, vm1):
    known = {**HEADER, "If-None-Match": ask(vm1).headers["ETag"]}
    assert ask(vm1, headers=known).status == 304
    inject(still, "cut-json")
    assert (ask(vm1, headers=known).status, len(ask(vm1, headers=known).body) > 0) == (200, True)


def test_truncated_closes_before_content_length(still, vm1):
    true = ask(vm1).body
    inject(still, "truncated", keep=7)
    head, _blank, body = raw(vm1).partition(b"\r\n\r\n")
    assert b"Content-Length: %d\r\n" % len(true) in head + b"\r\n" and body == true[:7]
    with pytest.raises(http.client.IncompleteRead):
        ask(vm1)


def test_truncated_chunked_closes_inside_a_chunk(still, vm1):
    true = ask(vm1).body
    inject(still, "truncated-chunked")
    head, _blank, body = raw(vm1).partition(b"\r\n\r\n")
    assert b"Transfer-Encoding: chunked" in head and b"Content-Length" not in head
    assert body == b"%x\r\n" % len(true) + true[: len(true) // 2]
    with pytest.raises(http.client.IncompleteRead):
        ask(vm1)


@pytest.mark.parametrize("kind, arrives", [("trickle", b"\r\n\r\n"), ("trickle-header", b"HTTP")])
def test_trickle_sends_a_few_bytes_at_a_time(still, vm1, kind, arrives):
    inject(still, kind, bytes_per_second=40)
    with connected(vm1) as connection:
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
    # the first few come at once, then a few every tenth of a second
    assert before <= len(received) <= before + 4 + 40 * (time.monotonic() - began)


def test_a_trickled_answer_is_whole_in_the_end(still, vm1):
    true = ask(vm1).body
    inject(still, "trickle", bytes_per_second=200)
    assert ask(vm1).body == true


def test_hang_says_nothing_until_the_fault_is_cleared(still, vm1):
    fault = inject(still, "hang")
    with connected(vm1) as connection:
        connection.sendall(request_bytes())
        connection.settimeout(0.3)
        with pytest.raises(socket.timeout):
            connection.recv(1)
        connection.settimeout(60)
        still.delete(f"/faults/{fault['number']}")
        assert connection.recv(1) == b""


def test_hang_ends_with_its_window(still, vm1):
    inject(still, "hang", **{"for": 30})
    with connected(vm1) as connection:
        connection.sendall(request_bytes())
        still.advance(30)
        assert connection.recv(1) == b""
    assert ask(vm1).status == 200


def test_a_client_that_gives_up_on_a_hanging_answer_does_not_disturb_others(still, vm1):
    inject(still, "hang", vm="vm1")
    for _each in range(20):
        with connected(vm1) as connection:
            connection.sendall(request_bytes())
    assert ask(still.endpoints["vm2"]).status == 200


def test_delay_and_slow_first_answer_wait_simulated_time(still, vm1):
    inject(still, "slow-first-answer", delay="2m")
    got = []
    thread = threading.Thread(target=lambda: got.append(ask(vm1).status))
    thread.start()
    until(lambda: any(fault["seen"] for fault in still.get("/faults")["faults"]))
    assert ask(vm1).status == 200  # the second request is not slow
    still.advance(119)
    assert got == []
    still.advance(1)
    thread.join(60)
    assert got == [200]


def test_reset_is_a_reset(still, vm1):
    inject(still, "reset")
    assert broken(vm1) == (b"", True)


def test_refuse_closes_the_socket_for_its_window(still, vm1):
    with connected(vm1) as kept:
        kept.sendall(request_bytes(more=""))
        assert one_answer(kept)
        inject(still, "refuse", vm="vm1", **{"for": 60})
        until(lambda: connection_refused(vm1))
        assert kept.recv(1) == b""  # kept-alive connections end as well
    assert ask(still.endpoints["vm2"]).status == 200
    still.advance(60)
    until(lambda: not connection_refused(vm1))
    assert ask(vm1).status == 200


def connection_refused(endpoint):
    try:
        connected(endpoint).close()
    except ConnectionRefusedError:
        return True
    return False


def until(condition, seconds=60.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.01)


def test_refuse_without_a_vm_is_for_all(still, vm1):
    fault = inject(still, "refuse")
    until(lambda: connection_refused(vm1) and connection_refused(still.endpoints["vm2"]))
    still.delete(f"/faults/{fault['number']}")
    until(lambda: not connection_refused(vm1))


def test_a_lost_request_never_reaches_the_service_and_a_lost_answer_does(still, vm1):
    event_id = still.post("/events", {"type": "Freeze", "resources": ["vm1"], "hold": True})["id"]
    for kind, approved in (("lost-request", False), ("lost-answer", True)):
        inject(still, kind, method="POST", requests=1)
        with pytest.raises((ConnectionResetError, http.client.RemoteDisconnected)):
            approve(vm1, event_id)
        assert still.get("/events/" + event_id)["approved"] is approved
    assert approve(vm1, event_id).status == 200


@pytest.mark.parametrize("skew, seconds", [("20m", 1200), ("-20m", -1200), (-5, -5)])
def test_date_skew_moves_the_date_header_only(still, vm1, skew, seconds):
    true = parsedate_to_datetime(ask(vm1).headers["Date"])
    inject(still, "date-skew", skew=skew)
    answer = ask(vm1)
    assert (parsedate_to_datetime(answer.headers["Date"]) - true).total_seconds() == seconds
    assert answer.json["Events"] == []


def test_close_idle_ends_a_kept_connection_unannounced(still, vm1):
    inject(still, "close-idle", idle=90)
    with connected(vm1) as connection:
        connection.sendall(request_bytes(more=""))
        answer = one_answer(connection)
        assert answer.startswith(b"HTTP/1.1 200") and b"Connection: close" not in answer
        still.advance(89)
        connection.settimeout(0.1)
        with pytest.raises(socket.timeout):
            connection.recv(1)
        connection.settimeout(60)
        still.advance(1)
        assert connection.recv(1) == b"", "idle goes by simulated time"


def test_other_routes_and_clients_go_on(still, vm1):
    inject(still, "unavailable", route="scheduledevents", vm="vm1")
    assert ask(vm1).status == 503
    assert ask(vm1, "/metadata/versions").status == 200
    assert ask(still.endpoints["vm2"]).status == 200


def test_refusing_one_client_of_a_shared_listener_is_an_error_that_says_what_to_do(start_simulator):
    scenario = {"groups": {"web": {"kind": "standalone", "vms": {"vm1": {"source": "127.0.0.1"}}}}}
    sim = start_simulator(scenario)
    with pytest.raises(simulator_process.ControlError, match="use reset"):
        inject(sim, "refuse", vm="vm1")
    assert inject(sim, "refuse", **{"for": 1})["active"]


def test_faulty_requests_are_logged_with_their_fault(still, vm1):
    last = still.get("/requests")["requests"][-1]["number"]
    inject(still, "unavailable", requests=1)
    inject(still, "reset", requests=2)
    ask(vm1)
    broken(vm1)
    logged = still.get(f"/requests?after={last}")["requests"]
    assert [(each["status"], each["fault"]) for each in logged] == [(503, "unavailable"), (0, "reset")]


def test_a_faulty_post_answers_without_acting(still, vm1):
    event_id = still.post("/events", {"type": "Freeze", "resources": ["vm1"], "hold": True})["id"]
    for kind, status in (("server-error", 500), ("unavailable", 503), ("too-many-requests", 429), ("gone", 410)):
        inject(still, kind, method="POST", requests=1)
        assert approve(vm1, event_id).status == status
    assert not still.get("/events/" + event_id)["approved"]


def test_keep_alive_survives_an_injected_status(still, vm1):
    inject(still, "unavailable", requests=1)
    connection = http.client.HTTPConnection(urlsplit(vm1).netloc, timeout=60)
    statuses = []
    for _each in range(2):
        connection.request("GET", EVENTS, headers=HEADER)
        answer = connection.getresponse()
        answer.read()
        statuses.append(answer.status)
    connection.close()
    assert statuses == [503, 200]


def test_what_the_control_api_has_answered_to_is_in_effect(still, vm1):
    for _time in range(20):
        inject(still, "refuse")
        with pytest.raises(ConnectionRefusedError):
            connected(vm1)
        still.delete("/faults")
        assert ask(vm1).status == 200


def test_a_refusal_whose_time_has_passed_is_over_when_the_clock_has_been_moved(still, vm1):
    inject(still, "refuse", **{"for": 30})
    still.advance(31)
    assert ask(vm1).status == 200
