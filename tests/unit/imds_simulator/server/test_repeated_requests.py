# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Polls whose bytes were received before get the answer of the regular path (docs/simulator.md, Speed)."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import re

from imds_simulator.scenario.files import default_scenario
from imds_simulator.server import http_protocol
from imds_simulator.server.clock import ManualClock
from imds_simulator.server.engine import Engine
from imds_simulator.server.imds_handler import ImdsHandler
from imds_simulator.server.repeated_requests import MAX_REQUESTS
from support.simulator.raw_http import EVENTS, connect, read_response, request_bytes

POLL = request_bytes(more="")
INSTANCE = request_bytes("/metadata/instance/compute/name?api-version=2021-02-01&format=text", more="")
# the first is regular, the second is remembered
TWICE = 2


def poll(connection, request=POLL):
    connection.sendall(request)
    return read_response(connection)


def without_variable_parts(answer):
    return re.sub(rb"(Date|x-ms-request-id): [^\r]*", rb"\1", answer)


def status(answer):
    return int(answer.split()[1])


def schedule(sim, **more):
    return sim.post("/events", {"type": "Freeze", "resources": ["vm1"], "hold": True, **more})["id"]


def conversation(requests):
    """Return the answers to ``requests`` on one connection, and the number that aiohttp has handled."""

    async def talk():
        engine = Engine(default_scenario(), ManualClock(0), lambda _line: None)
        engine.simulation.apply_knobs(dataclasses.replace(engine.world.knobs, rate_limit=0))
        imds = ImdsHandler(engine).listener(engine.world.vms["vm1"])
        server = await asyncio.get_running_loop().create_server(imds, "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        answers = []
        for request in requests:
            writer.write(request)
            for _each in range(request.count(b"HTTP/1.1\r\n")):
                head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 60)
                size = int(re.search(rb"Content-Length: (\d+)", head)[1])
                answers.append(head + await reader.readexactly(size))
        writer.close()
        server.close()
        await imds.shutdown(0.1)
        return answers, imds.requests_count

    return asyncio.run(talk())


def test_repeated_poll_is_answered_without_aiohttp():
    answers, handled = conversation([POLL] * 20)
    assert [status(each) for each in answers] == [200] * 20
    assert handled == TWICE


def test_other_requests_between_polls_keep_the_polls_fast():
    approval = b"POST %s HTTP/1.1\r\nHost: x\r\nMetadata: true\r\nContent-Length: 2\r\n\r\n{}" % EVENTS.encode()
    answers, handled = conversation([POLL, POLL, POLL, INSTANCE, POLL, approval, POLL])
    assert [status(each) for each in answers] == [200] * 5 + [400, 200]
    assert handled == TWICE + 2


def test_requests_without_waiting_are_answered_in_order():
    answers, handled = conversation([POLL, POLL, POLL, POLL + INSTANCE + POLL, POLL, INSTANCE])
    assert [answer.endswith(b"vm1") for answer in answers] == [False] * 4 + [True, False, False, True]
    assert handled == TWICE + 5


def test_repeated_poll_of_http_1_0_keeps_its_version_and_connection(frozen_simulator):
    old = request_bytes(more="Connection: keep-alive\r\n").replace(b"HTTP/1.1", b"HTTP/1.0")
    with connect(frozen_simulator.endpoints["vm1"]) as connection:
        for _each in range(4):
            answer = poll(connection, old)
            assert answer.startswith(b"HTTP/1.0 200 ") and b"\r\nConnection: keep-alive\r\n" in answer


def test_requests_that_differ_are_not_kept_without_limit():
    others = [request_bytes(more=f"x-number: {number}\r\n") for number in range(MAX_REQUESTS)]
    _answers, handled = conversation([POLL] * 3 + [each for each in others for _twice in range(2)] + [POLL])
    assert handled == TWICE + 2 * len(others) + 1


def test_regular_path_is_taken_again_after_a_time(monkeypatch):
    # aiohttp closes a connection on which it sees no request
    monkeypatch.setattr(http_protocol, "REGULAR_INTERVAL", 0.0)
    _answers, handled = conversation([POLL] * 5)
    assert handled == 5


def test_repeated_poll_has_the_bytes_of_the_first_answer(frozen_simulator):
    schedule(frozen_simulator)
    with connect(frozen_simulator.endpoints["vm1"]) as connection:
        for version in ("2020-07-01", "2019-01-01"):
            request = request_bytes(EVENTS.replace("2020-07-01", version), more="")
            answers = [poll(connection, request) for _each in range(4)]
            assert len({without_variable_parts(answer) for answer in answers}) == 1
            assert len(set(re.findall(rb"x-ms-request-id: (\S+)", b"".join(answers)))) == 4
        etag = re.search(r"ETag: (\S+)", answers[0].decode())[1]
        known = request_bytes(EVENTS.replace("2020-07-01", version), more=f"If-None-Match: {etag}\r\n")
        answers = [without_variable_parts(poll(connection, known)) for _each in range(4)]
        # older versions of aiohttp add a Content-Length
        assert status(answers[0]) == 304 and len({each.replace(b"Content-Length: 0\r\n", b"") for each in answers}) == 1


def test_request_ids_are_random_uuids(frozen_simulator):
    with connect(frozen_simulator.endpoints["vm1"]) as connection:
        for _each in range(20):
            request_id = re.search(r"x-ms-request-id: (\S+)", poll(connection).decode())[1]
            assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", request_id)


def test_repeated_poll_follows_events_knobs_and_faults(frozen_simulator):
    sim = frozen_simulator
    with connect(sim.endpoints["vm1"]) as connection:
        for _each in range(4):
            assert b'"Events":[]' in poll(connection)
        event = schedule(sim)
        assert all(event.encode() in poll(connection) for _each in range(2))
        seen = [line["vm"] for line in sim.get("/log?what=seen")["lines"] if line["id"] == event]
        assert seen == ["vm1"]
        sim.post("/knobs", {"metadata_value": "exact"})
        upper = request_bytes(more="").replace(b"Metadata: true", b"Metadata: True")
        assert status(poll(connection, upper)) == 400
        sim.post("/knobs", {"metadata_value": "any_case"})
        assert [status(poll(connection, upper)) for _each in range(4)] == [200] * 4
        sim.post("/knobs", {"metadata_value": "exact"})
        assert status(poll(connection, upper)) == 400
        sim.post("/faults", {"kind": "status", "status": 503, "requests": "1-1"})
        assert [status(poll(connection)) for _each in range(2)] == [503, 200]
        sim.delete("/faults")
        sim.post("/advance", {"seconds": 90})
        assert status(poll(connection)) == 200


def test_repeated_poll_enables_the_service_again(frozen_simulator):
    sim = frozen_simulator
    with connect(sim.endpoints["stranger"]) as connection:
        for _each in range(4):
            poll(connection)
        sim.post("/knobs", {"enable_delay": 60, "empty_body_until_enabled": True})
        sim.post("/disable", {"group": "other"})
        assert [len(poll(connection).partition(b"\r\n\r\n")[2]) for _each in range(2)] == [0, 0]
        sim.post("/advance", {"seconds": 61})
        assert b"DocumentIncarnation" in poll(connection)


def test_repeated_polls_keep_the_service_enabled(frozen_simulator):
    sim = frozen_simulator
    with connect(sim.endpoints["stranger"]) as connection:
        for _each in range(4):
            poll(connection)
        enabled = sim.get("/log?what=enabled")["lines"]
        for _each in range(3):
            sim.post("/advance", {"seconds": "20h"})
            poll(connection)
        assert sim.get("/log?what=enabled")["lines"] == enabled


def test_repeated_polls_are_logged_as_the_first(frozen_simulator):
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


def test_rate_limit_counts_repeated_polls(start_simulator):
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


def test_poll_in_two_parts_is_one_request(frozen_simulator):
    with connect(frozen_simulator.endpoints["vm1"]) as connection:
        for _each in range(4):
            poll(connection)
        for cut in (10, len(POLL) - 2):
            # the first part is not the beginning of a known request for the simulator, which waits for the rest
            connection.sendall(POLL[:cut])
            frozen_simulator.get("/health")
            assert status(poll(connection, POLL[cut:])) == 200
            assert json.loads(poll(connection).partition(b"\r\n\r\n")[2])["DocumentIncarnation"] >= 0
