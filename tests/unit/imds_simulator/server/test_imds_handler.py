# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The HTTP contract over real sockets (docs/reference/scheduled-events.md 1; T72)."""

from __future__ import annotations

import json
import os
import re
import socket

import pytest

from support.simulator.raw_http import EVENTS, HEADER, approve, connect, read_response, request_bytes, send_request

NO_HEADER = {"error": "Bad request. Required metadata header not specified"}
GUID = "5EED0000-0000-4000-8000-0000000000FF"


def version_error(*newest):
    return {
        "error": "Bad request. api-version is invalid or was not specified in the request. "
        "For more information refer to aka.ms/azureimds",
        "newest-versions": list(newest),
    }


VERSION_ERROR = version_error("2020-07-01", "2019-08-01", "2019-04-01")


def schedule(sim, **more):
    return sim.post("/events", {"type": "Freeze", "resources": ["vm1"], "hold": True, **more})["id"]


def events(sim, vm="vm1"):
    return send_request(sim.endpoints[vm]).json


# -- requests


@pytest.mark.parametrize(
    "path",
    [
        EVENTS,
        "/metadata/scheduledEvents?api-version=2020-07-01",
        "/METADATA/SCHEDULEDEVENTS?API-VERSION=2020-07-01",
        "/metadata/scheduledevents/?api-version=2020-07-01",
        EVENTS + "&format=json",
        "/metadata/scheduledevents?format=json&api-version=2020-07-01",
    ],
)
def test_path_in_any_letter_case_and_with_one_slash_is_accepted(frozen_simulator, path):
    answer = send_request(frozen_simulator.endpoints["vm1"], path)
    assert (answer.status, set(answer.json)) == (200, {"DocumentIncarnation", "Events"})


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/metadata?api-version=2021-02-01",
        "/metadata//?api-version=2021-02-01",
        "/metadata/scheduledevents//?api-version=2020-07-01",
        "//metadata/scheduledevents?api-version=2020-07-01",
        "/metadata//scheduledevents?api-version=2020-07-01",
        "/metadata/%73cheduledevents?api-version=2020-07-01",
        "/metadata/latest/scheduledevents",
        "/metadata/scheduledevents/x?api-version=2020-07-01",
        "/metadata/identity?api-version=2018-02-01",
    ],
)
def test_path_unknown_is_404(frozen_simulator, path):
    answer = send_request(frozen_simulator.endpoints["vm1"], path)
    assert answer.status == 404 and list(answer.json) == ["error"]


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "PROPFIND"])
def test_method_other_than_get_and_post_is_405(frozen_simulator, method):
    answer = send_request(frozen_simulator.endpoints["vm1"], method=method)
    assert answer.status == 405 and answer.headers["Allow"] == "GET, POST"
    assert method == "HEAD" or list(answer.json) == ["error"]


def test_post_to_other_routes_is_405(frozen_simulator):
    assert (
        send_request(
            frozen_simulator.endpoints["vm1"], "/metadata/instance?api-version=2021-02-01", "POST", body=b"{}"
        ).status
        == 405
    )
    assert send_request(frozen_simulator.endpoints["vm1"], "/metadata/versions", "POST", body=b"{}").status == 405


@pytest.mark.parametrize("headers", [{}, {"Metadata": "false"}, {"Metadata": ""}, {"Metadata": "1"}])
@pytest.mark.parametrize(
    "path", [EVENTS, "/metadata/instance?api-version=2021-02-01", "/metadata/versions", "/metadata", "/latest/", "/"]
)
def test_metadata_header_missing_or_wrong_is_400(frozen_simulator, path, headers):
    answer = send_request(frozen_simulator.endpoints["vm1"], path, headers=headers)
    assert (answer.status, answer.json) == (400, NO_HEADER)


@pytest.mark.parametrize("headers", [{"metadata": "true"}, {"METADATA": "True"}, {"Metadata": "TRUE"}])
def test_metadata_header_in_any_letter_case_is_accepted(frozen_simulator, headers):
    assert send_request(frozen_simulator.endpoints["vm1"], headers=headers).status == 200


def test_metadata_header_is_optional_for_the_preview_version_only(frozen_simulator):
    path = "/metadata/scheduledevents?api-version="
    statuses = {
        version: send_request(frozen_simulator.endpoints["vm1"], path + version, headers={}).status
        for version in (
            "2017-03-01",
            "2017-08-01",
            "2017-11-01",
            "2019-01-01",
            "2019-04-01",
            "2019-08-01",
            "2020-07-01",
        )
    }
    assert statuses.pop("2017-03-01") == 200
    assert set(statuses.values()) == {400}
    assert (
        send_request(frozen_simulator.endpoints["vm1"], "/metadata/instance?api-version=2017-03-01", headers={}).status
        == 400
    )


def test_forwarded_request_is_rejected_with_xff_status(frozen_simulator):
    forwarded = {"Metadata": "true", "X-Forwarded-For": "10.0.0.1"}
    assert send_request(frozen_simulator.endpoints["vm1"], headers=forwarded).status == 400
    frozen_simulator.post("/knobs", {"xff_status": 403})
    answer = send_request(frozen_simulator.endpoints["vm1"], headers=forwarded)
    assert answer.status == 403 and "X-Forwarded-For" in answer.json["error"]


def test_query_with_duplicate_names_is_400(frozen_simulator):
    assert send_request(frozen_simulator.endpoints["vm1"], EVENTS + "&api-version=2020-07-01").status == 400
    assert send_request(frozen_simulator.endpoints["vm1"], EVENTS + "&Api-Version=2019-08-01").status == 400


@pytest.mark.parametrize(
    "query",
    [
        "",
        "?api-version=",
        "?api-version=latest",
        "?api-version={latest}",
        "?api-version=2031-01-01",
        "?api-version=2021-12-13",
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_version_missing_or_unknown_is_400_with_newest_versions(frozen_simulator, query, method):
    answer = send_request(
        frozen_simulator.endpoints["vm1"],
        "/metadata/scheduledevents" + query,
        method,
        body=b"{}" if method == "POST" else None,
    )
    assert (answer.status, answer.json) == (400, VERSION_ERROR)


def test_version_of_instance_has_its_own_list(frozen_simulator):
    answer = send_request(frozen_simulator.endpoints["vm1"], "/metadata/instance?api-version=2020-07-01")
    assert (answer.status, answer.json) == (400, version_error("2025-04-07", "2024-07-17", "2024-03-15"))


def test_errors_follow_the_knob_for_wording(frozen_simulator):
    frozen_simulator.post("/knobs", {"error_wording": "old"})
    answer = send_request(frozen_simulator.endpoints["vm1"], "/metadata/scheduledevents")
    assert answer.json == {
        "error": "Bad request. api-version was not specified in the request. For more information refer to "
        "aka.ms/azureimds",
        "newest-versions": ["2020-07-01", "2019-08-01", "2019-04-01"],
    }
    assert send_request(frozen_simulator.endpoints["vm1"], headers={}).json == {
        "error": "Bad request: . Required metadata header not specified"
    }


def test_version_unknown_to_instance_is_404_with_the_old_wording(frozen_simulator):
    frozen_simulator.post("/knobs", {"error_wording": "old"})
    answer = send_request(frozen_simulator.endpoints["vm1"], "/metadata/instance?api-version=2017-07-01")
    assert (answer.status, answer.json) == (404, {"error": "Not found. Invalid version requested"})
    for path in ("/metadata/instance", "/metadata/instance?api-version="):
        answer = send_request(frozen_simulator.endpoints["vm1"], path)
        assert (answer.status, set(answer.json)) == (400, {"error", "newest-versions"})


@pytest.mark.parametrize("path", ["/metadata", "/metadata/", "/METADATA?format=json", "/metadata?api-version=1"])
def test_path_without_route_and_version_is_400_with_newest_versions(frozen_simulator, path):
    answer = send_request(frozen_simulator.endpoints["vm1"], path)
    assert (answer.status, answer.json) == (400, version_error("2025-04-07", "2024-07-17", "2024-03-15"))


def test_extra_api_versions_are_accepted(frozen_simulator):
    schedule(frozen_simulator)
    path = "/metadata/scheduledevents?api-version=2024-07-09"
    assert send_request(frozen_simulator.endpoints["vm1"], path).status == 400
    frozen_simulator.post("/knobs", {"extra_api_versions": ["2024-07-09"]})
    assert send_request(frozen_simulator.endpoints["vm1"], path).json == events(frozen_simulator)


def test_response_has_the_headers_of_imds(frozen_simulator):
    answer = send_request(frozen_simulator.endpoints["vm1"])
    assert answer.headers["Content-Type"] == "application/json; charset=utf-8"
    assert re.fullmatch(r"IMDS/150\.870\.65\.\d+", answer.headers["Server"])
    assert re.fullmatch(r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT", answer.headers["Date"])
    assert re.fullmatch(r"[0-9a-f-]{36}", answer.headers["x-ms-request-id"])
    assert int(answer.headers["Content-Length"]) == len(answer.body)
    assert (
        answer.headers["x-ms-request-id"] != send_request(frozen_simulator.endpoints["vm1"]).headers["x-ms-request-id"]
    )


def test_etag_of_known_document_gives_304(frozen_simulator):
    endpoint = frozen_simulator.endpoints["vm1"]
    tag = send_request(endpoint).headers["ETag"]
    same = send_request(endpoint, headers={**HEADER, "If-None-Match": tag})
    assert (same.status, same.body, same.headers["ETag"]) == (304, b"", tag)
    assert send_request(endpoint, headers={**HEADER, "If-None-Match": '"other"'}).status == 200
    schedule(frozen_simulator)
    changed = send_request(endpoint, headers={**HEADER, "If-None-Match": tag})
    assert changed.status == 200 and changed.headers["ETag"] != tag
    assert (
        send_request(endpoint, "/metadata/scheduledevents?api-version=2019-08-01").headers["ETag"]
        != changed.headers["ETag"]
    )


def test_etag_off_sends_no_etag(frozen_simulator):
    tag = send_request(frozen_simulator.endpoints["vm1"]).headers["ETag"]
    frozen_simulator.post("/knobs", {"etag": False})
    answer = send_request(frozen_simulator.endpoints["vm1"], headers={**HEADER, "If-None-Match": tag})
    assert answer.status == 200 and "ETag" not in answer.headers


def test_keep_alive_connection_serves_many_requests(frozen_simulator):
    with connect(frozen_simulator.endpoints["vm1"]) as connection:
        for _each in range(3):
            connection.sendall(request_bytes(more=""))
            assert read_response(connection).startswith(b"HTTP/1.1 200 OK")


# -- approvals


def test_approval_of_one_id_is_200_and_not_visible(frozen_simulator):
    event_id = schedule(frozen_simulator)
    before = events(frozen_simulator)
    answer = approve(frozen_simulator.endpoints["vm1"], event_id)
    assert (answer.status, answer.body, answer.headers["Content-Length"]) == (200, b"", "0")
    assert events(frozen_simulator) == before
    assert frozen_simulator.get("/events/" + event_id)["approved_by"] == ["vm1"]


def test_approval_repeated_by_any_vm_is_200(frozen_simulator):
    event_id = schedule(frozen_simulator)
    for vm in ("vm1", "vm1", "vm2"):
        assert approve(frozen_simulator.endpoints[vm], event_id).status == 200


def test_approval_of_several_ids_in_any_letter_case_is_200(frozen_simulator):
    event_ids = [schedule(frozen_simulator), schedule(frozen_simulator, type="Reboot")]
    assert approve(frozen_simulator.endpoints["vm1"], event_ids[0].lower(), event_ids[1], event_ids[0]).status == 200
    assert [frozen_simulator.get("/events/" + each)["approved"] for each in event_ids] == [True, True]


def test_approval_by_group_member_is_200_and_by_others_400(frozen_simulator):
    event_id = schedule(frozen_simulator)
    assert approve(frozen_simulator.endpoints["stranger"], event_id).status == 400
    assert not frozen_simulator.get("/events/" + event_id)["approved"]
    assert approve(frozen_simulator.endpoints["vm2"], event_id).status == 200


@pytest.mark.parametrize("status", [400, 200, 404])
def test_approval_of_unknown_id_has_unknown_event_status(frozen_simulator, status):
    frozen_simulator.post("/knobs", {"unknown_event_status": status})
    assert approve(frozen_simulator.endpoints["vm1"], GUID).status == status
    gone = schedule(frozen_simulator)
    frozen_simulator.post(f"/events/{gone}/cancel")
    assert approve(frozen_simulator.endpoints["vm1"], gone).status == status


def test_approval_of_known_and_unknown_ids_follows_partial_batch(frozen_simulator):
    event_id = schedule(frozen_simulator)
    assert approve(frozen_simulator.endpoints["vm1"], event_id, GUID).status == 400
    assert not frozen_simulator.get("/events/" + event_id)["approved"]
    frozen_simulator.post("/knobs", {"partial_batch": "apply_valid"})
    assert approve(frozen_simulator.endpoints["vm1"], GUID, event_id).status == 200
    assert frozen_simulator.get("/events/" + event_id)["approved"]


def test_approval_of_started_event_is_200(frozen_simulator):
    event_id = schedule(frozen_simulator, starts="automatic_approval")
    assert approve(frozen_simulator.endpoints["vm1"], event_id).status == 200


def test_approval_answer_is_the_document_with_post_body(frozen_simulator):
    event_id = schedule(frozen_simulator)
    frozen_simulator.post("/knobs", {"post_body": "document"})
    assert approve(frozen_simulator.endpoints["vm1"], event_id).json == events(frozen_simulator)


@pytest.mark.parametrize("content_type", [None, "application/x-www-form-urlencoded", "application/json", "text/plain"])
def test_approval_with_any_content_type_is_200(frozen_simulator, content_type):
    event_id = schedule(frozen_simulator)
    headers = {**HEADER, **({"Content-Type": content_type} if content_type else {})}
    assert approve(frozen_simulator.endpoints["vm1"], event_id, headers=headers).status == 200
    assert frozen_simulator.get("/events/" + event_id)["approved"]


def test_approval_with_other_members_ignores_them(frozen_simulator):
    event_id = schedule(frozen_simulator)
    for incarnation in (5, "5"):
        body = {"DocumentIncarnation": incarnation, "StartRequests": [{"EventId": event_id, "Why": "x"}]}
        assert (
            send_request(frozen_simulator.endpoints["vm1"], EVENTS, "POST", body=json.dumps(body).encode()).status
            == 200
        )


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
        b'{"StartRequests":["' + GUID.encode() + b'"]}',
        b"\xff\xfe",
        b"StartRequests=x",
        b"[" * 30000,
    ],
)
def test_approval_with_malformed_body_is_400_and_changes_nothing(frozen_simulator, body):
    schedule(frozen_simulator)
    before = frozen_simulator.get("/events")
    answer = send_request(frozen_simulator.endpoints["vm1"], EVENTS, "POST", body=body)
    assert answer.status == 400 and list(answer.json) == ["error"]
    assert frozen_simulator.get("/events") == before


@pytest.mark.parametrize(
    "body, headers",
    [
        (json.dumps({"StartRequests": [{"EventId": "\ud800"}]}).encode(), HEADER),
        (b"this is no gzip", {**HEADER, "Content-Encoding": "gzip"}),
        (b"", {**HEADER, "Content-Encoding": "deflate"}),
    ],
)
def test_approval_with_unreadable_body_is_400(frozen_simulator, body, headers):
    answer = send_request(frozen_simulator.endpoints["vm1"], EVENTS, "POST", headers, body)
    assert answer.status == 400 and answer.body
    assert send_request(frozen_simulator.endpoints["vm1"]).status == 200


def test_description_with_lone_surrogate_is_escaped(frozen_simulator):
    schedule(frozen_simulator, description="half \ud800")
    answer = send_request(frozen_simulator.endpoints["vm1"])
    assert answer.status == 200 and answer.json["Events"][0]["Description"] == "half \ud800"


def test_expect_100_continue_is_answered_before_the_body(frozen_simulator):
    body = json.dumps({"StartRequests": [{"EventId": schedule(frozen_simulator)}]}).encode()
    head = "POST %s HTTP/1.1\r\nHost: x\r\nMetadata: true\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n" % (
        EVENTS,
        len(body),
    )
    with connect(frozen_simulator.endpoints["vm1"]) as connection:
        connection.sendall(head.encode())
        assert connection.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(body)
        assert read_response(connection).startswith(b"HTTP/1.1 200 OK\r\n")


def test_log_of_approval_truncates_long_and_many_ids(frozen_simulator):
    last = frozen_simulator.get("/log")["lines"][-1]["number"]
    approve(frozen_simulator.endpoints["vm1"], "x" * 60000)
    approve(frozen_simulator.endpoints["vm1"], *(f"y{number}" for number in range(1000)))
    long, many = frozen_simulator.get(f"/log?what=approval&after={last}")["lines"]
    assert long["ids"] == ["x" * 64] and len(long["refused"]) == 200
    assert many["ids"] == [f"y{number}" for number in range(20)]


def test_approval_with_body_over_64_kib_is_400(frozen_simulator):
    event_id = schedule(frozen_simulator)
    body = json.dumps({"StartRequests": [{"EventId": event_id}]}).encode()
    assert send_request(frozen_simulator.endpoints["vm1"], EVENTS, "POST", body=body.ljust(65536)).status == 200
    assert send_request(frozen_simulator.endpoints["vm1"], EVENTS, "POST", body=body.ljust(65537)).status == 400


@pytest.mark.parametrize(
    "headers, path",
    [({}, EVENTS), ({"Metadata": "true", "X-Forwarded-For": "x"}, EVENTS), (HEADER, "/metadata/scheduledevents")],
)
def test_approval_obeys_the_rules_for_get(frozen_simulator, headers, path):
    event_id = schedule(frozen_simulator)
    assert approve(frozen_simulator.endpoints["vm1"], event_id, headers=headers, path=path).status == 400
    assert not frozen_simulator.get("/events/" + event_id)["approved"]


def test_approval_with_the_preview_version_needs_no_header(frozen_simulator):
    event_id = schedule(frozen_simulator)
    path = "/metadata/scheduledevents?api-version=2017-03-01"
    assert approve(frozen_simulator.endpoints["vm1"], event_id, headers={}, path=path).status == 200


# -- rate limit and clients


def test_rate_limit_of_five_per_second_then_429(start_simulator):
    sim = start_simulator("live-migration", args=["--clock", "manual"])
    statuses = [
        send_request(sim.endpoints["vm1"], path).status
        for path in (EVENTS, EVENTS, "/metadata/versions", EVENTS, "/metadata/instance?api-version=2021-02-01", EVENTS)
    ]
    assert statuses[-1] == 429 and 429 not in statuses[:5]
    assert send_request(sim.endpoints["vm1"]).json == {"error": "Too many requests"}
    assert send_request(sim.endpoints["vm2"]).status == 200
    sim.post("/knobs", {"rate_limit": "off"})
    assert {send_request(sim.endpoints["vm1"]).status for _each in range(12)} == {200}


def test_rate_limit_is_a_sliding_second():
    from imds_simulator.protocol.rate_limit import RateLimit

    limit = RateLimit()
    assert [limit.allows("a", 2, moment) for moment in (0, 0.5, 0.9, 1.0, 1.1, 1.5)] == [
        True,
        True,
        False,
        True,
        False,
        True,
    ]
    assert limit.allows("b", 2, 0.9)
    # a limit that Python cannot count to, as a value for "no limit"
    assert limit.allows("b", 10**20, 0.9)


def scenario_by_source(**more):
    return {
        "groups": {
            "one": {"kind": "standalone", "vms": {"vm1": {"source": "127.0.1.1"}}},
            "two": {"kind": "standalone", "vms": {"vm2": {"source": "127.0.1.2"}}},
        },
        **more,
    }


def send_request_from(source, endpoint):
    import http.client
    from urllib.parse import urlsplit

    connection = http.client.HTTPConnection(urlsplit(endpoint).netloc, timeout=60, source_address=(source, 0))
    try:
        connection.request("GET", "/metadata/instance/compute/name?api-version=2021-02-01&format=text", headers=HEADER)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def test_shared_address_identifies_vms_by_source_address(start_simulator):
    sim = start_simulator(scenario_by_source())
    assert sim.endpoints["vm1"] == sim.endpoints["vm2"]
    assert send_request_from("127.0.1.1", sim.endpoints["vm1"]) == (200, "vm1")
    assert send_request_from("127.0.1.2", sim.endpoints["vm1"]) == (200, "vm2")
    status, body = send_request_from("127.0.1.3", sim.endpoints["vm1"])
    assert status == 404 and "127.0.1.3" in json.loads(body)["error"]
    assert any(line["what"] == "unknown-client" and line["address"] == "127.0.1.3" for line in sim.get("/log")["lines"])


@pytest.mark.skipif(not socket.has_ipv6 or not os.path.exists("/proc/net/if_inet6"), reason="no IPv6 here")
def test_shared_ipv6_address_identifies_ipv4_clients(start_simulator):
    sim = start_simulator(scenario_by_source(), listen="[::]:0")
    endpoint = sim.endpoints["vm1"].replace("[::]", "127.0.0.1")
    assert send_request_from("127.0.1.1", endpoint) == (200, "vm1")
    assert send_request_from("127.0.1.2", endpoint) == (200, "vm2")
    status, body = send_request_from("127.0.1.3", endpoint)
    assert status == 404 and "source address 127.0.1.3" in json.loads(body)["error"]
    assert {each["address"] for each in sim.get("/requests")["requests"]} == {"127.0.1.1", "127.0.1.2", "127.0.1.3"}


def test_default_vm_is_used_for_unknown_sources(start_simulator):
    sim = start_simulator("live-migration", args=["--source", "vm2=127.0.1.2"])
    assert send_request_from("127.0.1.2", sim.endpoints["vm2"]) == (200, "vm2")
    assert sim.endpoints["vm1"] != sim.endpoints["vm2"]
    default = start_simulator(scenario_by_source(default_vm="vm2"))
    assert send_request_from("127.0.1.9", default.endpoints["vm1"]) == (200, "vm2")


def test_enable_delay_delays_or_empties_the_first_answer(start_simulator):
    import threading

    sim = start_simulator(
        {"knobs": {"enable_delay": 119}, "groups": {"web": {"vms": {"vm1": {}, "vm2": {}}}}}, args=["--clock", "manual"]
    )
    got = []
    threads = [
        threading.Thread(target=lambda vm=vm: got.append(send_request(sim.endpoints[vm]).json)) for vm in ("vm1", "vm2")
    ]
    for thread in threads:
        thread.start()
    while not sim.get("/log")["lines"]:
        pass
    sim.advance(118)
    assert send_request(sim.endpoints["vm1"], "/metadata/versions").status == 200
    assert got == []
    sim.advance(1)
    for thread in threads:
        thread.join(60)
    assert got == [{"DocumentIncarnation": 1, "Events": []}] * 2
    sim.post("/knobs", {"empty_body_until_enabled": True})
    sim.post("/disable", {"group": "web"})
    empty = send_request(sim.endpoints["vm1"])
    assert (empty.status, empty.body) == (200, b"")
    sim.advance(119)
    assert send_request(sim.endpoints["vm2"]).json["Events"] == []


def test_idle_disable_after_a_day_disables_the_service(start_simulator):
    sim = start_simulator("live-migration", args=["--clock", "manual"])
    send_request(sim.endpoints["vm1"])
    sim.advance(10)
    assert send_request(sim.endpoints["vm1"]).json["DocumentIncarnation"] == 2
    sim.advance(86401)
    assert send_request(sim.endpoints["vm2"]).json == {"DocumentIncarnation": 1, "Events": []}
    assert [line["by"] for line in sim.get("/log?what=enabled")["lines"]] == ["vm1", "vm2"]
