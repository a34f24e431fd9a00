# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Polls on one connection."""

from __future__ import annotations

import re

from support.simulator.raw_http import EVENTS, connect, read_response, request_bytes, send_raw

POLL = request_bytes(more="")
INSTANCE = request_bytes("/metadata/instance/compute/name?api-version=2021-02-01&format=text", more="")


def poll(connection, request=POLL):
    connection.sendall(request)
    return read_response(connection)


def status(answer):
    return int(answer.split()[1])


def schedule(sim, **more):
    return sim.post("/events", {"type": "Freeze", "resources": ["vm1"], "hold": True, **more})["id"]


def test_requests_without_waiting_are_answered_in_order(frozen_simulator):
    answers = send_raw(frozen_simulator.endpoints["vm1"], POLL + INSTANCE + request_bytes())
    first, second, third = answers.split(b"HTTP/1.1 200 OK")[1:]
    assert second.endswith(b"vm1") and all(b"DocumentIncarnation" in each for each in (first, third))


def test_request_ids_are_random_uuids(frozen_simulator):
    with connect(frozen_simulator.endpoints["vm1"]) as connection:
        for _each in range(20):
            request_id = re.search(r"x-ms-request-id: (\S+)", poll(connection).decode())[1]
            assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", request_id)


def test_poll_follows_events_knobs_and_faults(frozen_simulator):
    sim = frozen_simulator
    with connect(sim.endpoints["vm1"]) as connection:
        for _each in range(4):
            assert b'"Events":[]' in poll(connection)
        event = schedule(sim)
        assert all(event.encode() in poll(connection) for _each in range(2))
        seen = [line["vm"] for line in sim.get("/log?what=seen")["lines"] if line["id"] == event]
        assert seen == ["vm1"]
        sim.post("/knobs", {"etag": False})
        assert b"ETag" not in poll(connection)
        sim.post("/faults", {"kind": "status", "status": 503, "requests": "1-1"})
        assert [status(poll(connection)) for _each in range(2)] == [503, 200]
        sim.delete("/faults")
        sim.post("/advance", {"seconds": 90})
        assert status(poll(connection)) == 200


def test_poll_enables_the_service_again(frozen_simulator):
    sim = frozen_simulator
    with connect(sim.endpoints["stranger"]) as connection:
        for _each in range(4):
            poll(connection)
        sim.post("/knobs", {"enable_delay": 60, "empty_body_until_enabled": True})
        sim.post("/disable", {"group": "other"})
        assert [len(poll(connection).partition(b"\r\n\r\n")[2]) for _each in range(2)] == [0, 0]
        sim.post("/advance", {"seconds": 61})
        assert b"DocumentIncarnation" in poll(connection)


def test_polls_keep_the_service_enabled(frozen_simulator):
    sim = frozen_simulator
    with connect(sim.endpoints["stranger"]) as connection:
        for _each in range(4):
            poll(connection)
        enabled = sim.get("/log?what=enabled")["lines"]
        for _each in range(3):
            sim.post("/advance", {"seconds": "20h"})
            poll(connection)
        assert sim.get("/log?what=enabled")["lines"] == enabled


def test_polls_are_logged(frozen_simulator):
    sim = frozen_simulator
    last = max((each["number"] for each in sim.get("/requests")["requests"]), default=0)
    first_seen_here = request_bytes(more="x-test: log\r\n")
    with connect(sim.endpoints["vm1"]) as connection:
        for _each in range(5):
            poll(connection, first_seen_here)
    entries = sim.get(f"/requests?after={last}")["requests"]
    assert len(entries) == 5
    same = [{key: entry[key] for key in entry if key not in ("number", "real")} for entry in entries]
    assert all(entry == same[0] for entry in same) and same[0]["address"] == "127.0.0.1"


def test_rate_limit_counts_polls(start_simulator):
    sim = start_simulator(args=["--clock", "manual", "--knob", "rate_limit=3"])
    with connect(sim.endpoints["vm1"]) as connection:
        assert [status(poll(connection)) for _each in range(20)].count(429) > 0


def test_body_that_looks_like_a_poll_is_a_body(frozen_simulator):
    head = b"POST %s HTTP/1.1\r\nHost: x\r\nMetadata: true\r\nContent-Length: %d\r\n" % (EVENTS.encode(), len(POLL))
    with connect(frozen_simulator.endpoints["vm1"]) as connection:
        for _each in range(4):
            poll(connection)
        connection.sendall(head + b"Expect: 100-continue\r\n\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 100 ")
        connection.sendall(POLL)
        assert status(read_response(connection)) == 400
        assert status(poll(connection)) == 200
