# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The HTTP contract over real sockets (docs/reference/scheduled-events.md 1; T72)."""

from __future__ import annotations

import json
import os
import re
import socket

import pytest

from support.simulator.raw_http import EVENTS, HEADER, approve, ask, connected, one_answer, request_bytes

NO_HEADER = {"error": "Bad request. Required metadata header not specified"}
GUID = "5EED0000-0000-4000-8000-0000000000FF"


def version_error(*newest):
    return {
        "error": "Bad request. api-version is invalid or was not specified in the request. "
        "For more information refer to aka.ms/azureimds",
        "newest-versions": list(newest),
    }


OWN = version_error("2020-07-01", "2019-08-01", "2019-04-01")


def schedule(sim, **more):
    return sim.post("/events", {"type": "Freeze", "resources": ["vm1"], "hold": True, **more})["id"]


def events(sim, vm="vm1"):
    return ask(sim.endpoints[vm]).json


# -- asking


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
def test_the_path_is_found_in_any_letter_case_and_with_one_slash(still, path):
    answer = ask(still.endpoints["vm1"], path)
    assert (answer.status, set(answer.json)) == (200, {"DocumentIncarnation", "Events"})


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/metadata",
        "/metadata/",
        "/metadata/scheduledevents//?api-version=2020-07-01",
        "//metadata/scheduledevents?api-version=2020-07-01",
        "/metadata//scheduledevents?api-version=2020-07-01",
        "/metadata/%73cheduledevents?api-version=2020-07-01",
        "/metadata/latest/scheduledevents",
        "/metadata/scheduledevents/x?api-version=2020-07-01",
        "/metadata/identity?api-version=2018-02-01",
    ],
)
def test_other_paths_are_404(still, path):
    answer = ask(still.endpoints["vm1"], path)
    assert answer.status == 404 and list(answer.json) == ["error"]


def test_a_trailing_slash_can_be_refused_by_knob(still):
    still.post("/knobs", {"trailing_slash": "reject"})
    assert ask(still.endpoints["vm1"], "/metadata/scheduledevents/?api-version=2020-07-01").status == 404


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "PROPFIND"])
def test_other_methods_are_405(still, method):
    answer = ask(still.endpoints["vm1"], method=method)
    assert answer.status == 405 and answer.headers["Allow"] == "GET, POST"
    assert method == "HEAD" or list(answer.json) == ["error"]


def test_post_is_for_scheduled_events_only(still):
    assert ask(still.endpoints["vm1"], "/metadata/instance?api-version=2021-02-01", "POST", body=b"{}").status == 405
    assert ask(still.endpoints["vm1"], "/metadata/versions", "POST", body=b"{}").status == 405


@pytest.mark.parametrize("headers", [{}, {"Metadata": "false"}, {"Metadata": ""}, {"Metadata": "1"}])
@pytest.mark.parametrize("path", [EVENTS, "/metadata/instance?api-version=2021-02-01", "/metadata/versions"])
def test_the_metadata_header_is_required(still, path, headers):
    answer = ask(still.endpoints["vm1"], path, headers=headers)
    assert (answer.status, answer.json) == (400, NO_HEADER)


@pytest.mark.parametrize("headers", [{"metadata": "true"}, {"METADATA": "True"}, {"Metadata": "TRUE"}])
def test_header_name_and_value_are_found_in_any_letter_case(still, headers):
    assert ask(still.endpoints["vm1"], headers=headers).status == 200


@pytest.mark.parametrize("value, exact, anything", [("true", 200, 200), ("True", 400, 200), ("1", 400, 200)])
def test_what_counts_as_metadata_header_is_a_knob(still, value, exact, anything):
    still.post("/knobs", {"metadata_value": "exact"})
    assert ask(still.endpoints["vm1"], headers={"Metadata": value}).status == exact
    still.post("/knobs", {"metadata_value": "any"})
    assert ask(still.endpoints["vm1"], headers={"Metadata": value}).status == anything


def test_only_the_preview_version_works_without_the_header(still):
    path = "/metadata/scheduledevents?api-version="
    statuses = {
        version: ask(still.endpoints["vm1"], path + version, headers={}).status
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
    assert ask(still.endpoints["vm1"], "/metadata/instance?api-version=2017-03-01", headers={}).status == 400


def test_a_forwarded_request_is_rejected_with_the_knob_s_status(still):
    forwarded = {"Metadata": "true", "X-Forwarded-For": "10.0.0.1"}
    assert ask(still.endpoints["vm1"], headers=forwarded).status == 400
    still.post("/knobs", {"xff_status": 403})
    answer = ask(still.endpoints["vm1"], headers=forwarded)
    assert answer.status == 403 and "X-Forwarded-For" in answer.json["error"]


def test_duplicate_query_names_are_rejected(still):
    assert ask(still.endpoints["vm1"], EVENTS + "&api-version=2020-07-01").status == 400
    assert ask(still.endpoints["vm1"], EVENTS + "&Api-Version=2019-08-01").status == 400


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
def test_a_missing_or_unknown_version_is_400_with_the_newest(still, query, method):
    answer = ask(
        still.endpoints["vm1"], "/metadata/scheduledevents" + query, method, body=b"{}" if method == "POST" else None
    )
    assert (answer.status, answer.json) == (400, OWN)


def test_instance_has_versions_of_its_own(still):
    answer = ask(still.endpoints["vm1"], "/metadata/instance?api-version=2020-07-01")
    assert (answer.status, answer.json) == (400, version_error("2025-04-07", "2024-07-17", "2024-03-15"))


def test_wording_and_list_of_errors_are_knobs(still):
    still.post("/knobs", {"error_wording": "old", "newest_versions": "instance"})
    answer = ask(still.endpoints["vm1"], "/metadata/scheduledevents")
    assert answer.json == {
        "error": "Bad request. api-version was not specified in the request. For more information refer to "
        "aka.ms/azureimds",
        "newest-versions": ["2025-04-07", "2024-07-17", "2024-03-15"],
    }
    assert ask(still.endpoints["vm1"], headers={}).json == {
        "error": "Bad request: . Required metadata header not specified"
    }


def test_further_versions_can_be_accepted(still):
    schedule(still)
    path = "/metadata/scheduledevents?api-version=2024-07-09"
    assert ask(still.endpoints["vm1"], path).status == 400
    still.post("/knobs", {"extra_api_versions": ["2024-07-09"]})
    assert ask(still.endpoints["vm1"], path).json == events(still)


def test_headers_of_an_answer(still):
    answer = ask(still.endpoints["vm1"])
    assert answer.headers["Content-Type"] == "application/json; charset=utf-8"
    assert re.fullmatch(r"IMDS/150\.870\.65\.\d+", answer.headers["Server"])
    assert re.fullmatch(r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT", answer.headers["Date"])
    assert re.fullmatch(r"[0-9a-f-]{36}", answer.headers["x-ms-request-id"])
    assert int(answer.headers["Content-Length"]) == len(answer.body)
    assert answer.headers["x-ms-request-id"] != ask(still.endpoints["vm1"]).headers["x-ms-request-id"]


def test_etag_and_304(still):
    endpoint = still.endpoints["vm1"]
    tag = ask(endpoint).headers["ETag"]
    same = ask(endpoint, headers={**HEADER, "If-None-Match": tag})
    assert (same.status, same.body, same.headers["ETag"]) == (304, b"", tag)
    assert ask(endpoint, headers={**HEADER, "If-None-Match": '"other"'}).status == 200
    schedule(still)
    changed = ask(endpoint, headers={**HEADER, "If-None-Match": tag})
    assert changed.status == 200 and changed.headers["ETag"] != tag
    assert ask(endpoint, "/metadata/scheduledevents?api-version=2019-08-01").headers["ETag"] != changed.headers["ETag"]


def test_etag_can_be_switched_off(still):
    tag = ask(still.endpoints["vm1"]).headers["ETag"]
    still.post("/knobs", {"etag": False})
    answer = ask(still.endpoints["vm1"], headers={**HEADER, "If-None-Match": tag})
    assert answer.status == 200 and "ETag" not in answer.headers


def test_keep_alive_serves_many_requests_on_one_connection(still):
    with connected(still.endpoints["vm1"]) as connection:
        for _each in range(3):
            connection.sendall(request_bytes(more=""))
            assert one_answer(connection).startswith(b"HTTP/1.1 200 OK")


# -- approving


def test_one_valid_id_is_200_with_an_empty_body_and_changes_nothing_visible(still):
    event_id = schedule(still)
    before = events(still)
    answer = approve(still.endpoints["vm1"], event_id)
    assert (answer.status, answer.body, answer.headers["Content-Length"]) == (200, b"", "0")
    assert events(still) == before
    assert still.get("/events/" + event_id)["approved_by"] == ["vm1"]


def test_again_by_the_same_and_by_another_vm_is_200(still):
    event_id = schedule(still)
    for vm in ("vm1", "vm1", "vm2"):
        assert approve(still.endpoints[vm], event_id).status == 200


def test_several_ids_repeated_ids_and_other_letter_case(still):
    ids = [schedule(still), schedule(still, type="Reboot")]
    assert approve(still.endpoints["vm1"], ids[0].lower(), ids[1], ids[0]).status == 200
    assert [still.get("/events/" + each)["approved"] for each in ids] == [True, True]


def test_letter_case_and_repetition_are_knobs(still):
    event_id = schedule(still, id=GUID)
    still.post("/knobs", {"id_case": "exact", "duplicate_ids": "reject"})
    assert approve(still.endpoints["vm1"], event_id.lower()).status == 400
    assert approve(still.endpoints["vm1"], event_id, event_id).status == 400
    assert approve(still.endpoints["vm1"], event_id).status == 200


def test_a_vm_of_the_group_that_is_not_in_resources_may_approve_and_one_outside_may_not(still):
    event_id = schedule(still)
    assert approve(still.endpoints["stranger"], event_id).status == 400
    assert not still.get("/events/" + event_id)["approved"]
    assert approve(still.endpoints["vm2"], event_id).status == 200


@pytest.mark.parametrize("status", [400, 200, 404])
def test_an_unknown_id_has_the_knob_s_status(still, status):
    still.post("/knobs", {"unknown_event_status": status})
    assert approve(still.endpoints["vm1"], GUID).status == status
    gone = schedule(still)
    still.post(f"/events/{gone}/cancel")
    assert approve(still.endpoints["vm1"], gone).status == status


def test_a_mixed_list_is_refused_whole_or_applied_in_part(still):
    event_id = schedule(still)
    assert approve(still.endpoints["vm1"], event_id, GUID).status == 400
    assert not still.get("/events/" + event_id)["approved"]
    still.post("/knobs", {"partial_batch": "apply_valid"})
    assert approve(still.endpoints["vm1"], GUID, event_id).status == 200
    assert still.get("/events/" + event_id)["approved"]


def test_a_started_event_is_200_or_what_the_knob_says(still):
    event_id = schedule(still, starts="automatic_approval")
    assert approve(still.endpoints["vm1"], event_id).status == 200
    still.post("/knobs", {"started_event_status": 400})
    assert approve(still.endpoints["vm1"], event_id).status == 400


def test_the_answer_can_be_the_document(still):
    event_id = schedule(still)
    still.post("/knobs", {"post_body": "document"})
    assert approve(still.endpoints["vm1"], event_id).json == events(still)


@pytest.mark.parametrize("content_type", [None, "application/x-www-form-urlencoded", "application/json", "text/plain"])
def test_content_type_does_not_matter(still, content_type):
    event_id = schedule(still)
    headers = {**HEADER, **({"Content-Type": content_type} if content_type else {})}
    assert approve(still.endpoints["vm1"], event_id, headers=headers).status == 200
    assert still.get("/events/" + event_id)["approved"]


def test_further_members_are_ignored(still):
    event_id = schedule(still)
    for incarnation in (5, "5"):
        body = {"DocumentIncarnation": incarnation, "StartRequests": [{"EventId": event_id, "Why": "x"}]}
        assert ask(still.endpoints["vm1"], EVENTS, "POST", body=json.dumps(body).encode()).status == 200


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
def test_malformed_bodies_are_400_and_change_nothing(still, body):
    schedule(still)
    before = still.get("/events")
    answer = ask(still.endpoints["vm1"], EVENTS, "POST", body=body)
    assert answer.status == 400 and list(answer.json) == ["error"]
    assert still.get("/events") == before


@pytest.mark.parametrize(
    "body, headers",
    [
        (json.dumps({"StartRequests": [{"EventId": "\ud800"}]}).encode(), HEADER),
        (b"this is no gzip", {**HEADER, "Content-Encoding": "gzip"}),
        (b"", {**HEADER, "Content-Encoding": "deflate"}),
    ],
)
def test_bodies_that_cannot_be_read_are_400(still, body, headers):
    answer = ask(still.endpoints["vm1"], EVENTS, "POST", headers, body)
    assert answer.status == 400 and answer.body
    assert ask(still.endpoints["vm1"]).status == 200


def test_a_lone_surrogate_in_a_description_is_written_as_an_escape(still):
    schedule(still, description="half \ud800")
    answer = ask(still.endpoints["vm1"])
    assert answer.status == 200 and answer.json["Events"][0]["Description"] == "half \ud800"


def test_expect_100_continue_is_answered_before_the_body_comes(still):
    body = json.dumps({"StartRequests": [{"EventId": schedule(still)}]}).encode()
    head = "POST %s HTTP/1.1\r\nHost: x\r\nMetadata: true\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n" % (
        EVENTS,
        len(body),
    )
    with connected(still.endpoints["vm1"]) as connection:
        connection.sendall(head.encode())
        assert connection.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(body)
        assert one_answer(connection).startswith(b"HTTP/1.1 200 OK\r\n")


def test_the_log_keeps_the_beginning_of_long_and_many_ids(still):
    last = still.get("/log")["lines"][-1]["number"]
    approve(still.endpoints["vm1"], "x" * 60000)
    approve(still.endpoints["vm1"], *(f"y{number}" for number in range(1000)))
    long, many = still.get(f"/log?what=approval&after={last}")["lines"]
    assert long["ids"] == ["x" * 64] and len(long["refused"]) == 200
    assert many["ids"] == [f"y{number}" for number in range(20)]


def test_a_body_over_64_kib_is_400(still):
    event_id = schedule(still)
    body = json.dumps({"StartRequests": [{"EventId": event_id}]}).encode()
    assert ask(still.endpoints["vm1"], EVENTS, "POST", body=body.ljust(65536)).status == 200
    assert ask(still.endpoints["vm1"], EVENTS, "POST", body=body.ljust(65537)).status == 400
    still.post("/knobs", {"max_body": 20})
    assert ask(still.endpoints["vm1"], EVENTS, "POST", body=body).status == 400


@pytest.mark.parametrize(
    "headers, path",
    [({}, EVENTS), ({"Metadata": "true", "X-Forwarded-For": "x"}, EVENTS), (HEADER, "/metadata/scheduledevents")],
)
def test_the_rules_for_get_hold_for_post(still, headers, path):
    event_id = schedule(still)
    assert approve(still.endpoints["vm1"], event_id, headers=headers, path=path).status == 400
    assert not still.get("/events/" + event_id)["approved"]


def test_the_preview_approves_without_header(still):
    event_id = schedule(still)
    path = "/metadata/scheduledevents?api-version=2017-03-01"
    assert approve(still.endpoints["vm1"], event_id, headers={}, path=path).status == 200


# -- rate, clients


def test_five_requests_a_second_then_429_for_each_vm_over_all_routes(start_simulator):
    sim = start_simulator("live-migration", args=["--clock", "manual"])
    statuses = [
        ask(sim.endpoints["vm1"], path).status
        for path in (EVENTS, EVENTS, "/metadata/versions", EVENTS, "/metadata/instance?api-version=2021-02-01", EVENTS)
    ]
    assert statuses[-1] == 429 and 429 not in statuses[:5]
    assert ask(sim.endpoints["vm1"]).json == {"error": "Too many requests"}
    assert ask(sim.endpoints["vm2"]).status == 200
    sim.post("/knobs", {"rate_limit_scope": "route"})
    assert ask(sim.endpoints["vm1"], "/metadata/versions").status == 200
    sim.post("/knobs", {"rate_limit": "off"})
    assert {ask(sim.endpoints["vm1"]).status for _each in range(12)} == {200}


def test_the_rate_limit_is_a_sliding_second():
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


def by_source(**more):
    return {
        "groups": {
            "one": {"kind": "standalone", "vms": {"vm1": {"source": "127.0.1.1"}}},
            "two": {"kind": "standalone", "vms": {"vm2": {"source": "127.0.1.2"}}},
        },
        **more,
    }


def ask_from(source, endpoint):
    import http.client
    from urllib.parse import urlsplit

    connection = http.client.HTTPConnection(urlsplit(endpoint).netloc, timeout=60, source_address=(source, 0))
    try:
        connection.request("GET", "/metadata/instance/compute/name?api-version=2021-02-01&format=text", headers=HEADER)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def test_vms_behind_one_address_are_told_apart_by_source_address(start_simulator):
    sim = start_simulator(by_source())
    assert sim.endpoints["vm1"] == sim.endpoints["vm2"]
    assert ask_from("127.0.1.1", sim.endpoints["vm1"]) == (200, "vm1")
    assert ask_from("127.0.1.2", sim.endpoints["vm1"]) == (200, "vm2")
    status, body = ask_from("127.0.1.3", sim.endpoints["vm1"])
    assert status == 404 and "127.0.1.3" in json.loads(body)["error"]
    assert any(line["what"] == "unknown-client" and line["address"] == "127.0.1.3" for line in sim.get("/log")["lines"])


@pytest.mark.skipif(not socket.has_ipv6 or not os.path.exists("/proc/net/if_inet6"), reason="no IPv6 here")
def test_ipv4_clients_of_an_ipv6_address_are_told_apart_as_well(start_simulator):
    sim = start_simulator(by_source(), listen="[::]:0")
    endpoint = sim.endpoints["vm1"].replace("[::]", "127.0.0.1")
    assert ask_from("127.0.1.1", endpoint) == (200, "vm1")
    assert ask_from("127.0.1.2", endpoint) == (200, "vm2")
    status, body = ask_from("127.0.1.3", endpoint)
    assert status == 404 and "source address 127.0.1.3" in json.loads(body)["error"]
    assert {each["address"] for each in sim.get("/requests")["requests"]} == {"127.0.1.1", "127.0.1.2", "127.0.1.3"}


def test_a_default_vm_takes_unknown_sources_and_source_can_come_from_the_command_line(start_simulator):
    sim = start_simulator("live-migration", args=["--source", "vm2=127.0.1.2"])
    assert ask_from("127.0.1.2", sim.endpoints["vm2"]) == (200, "vm2")
    assert sim.endpoints["vm1"] != sim.endpoints["vm2"]
    default = start_simulator(by_source(default_vm="vm2"))
    assert ask_from("127.0.1.9", default.endpoints["vm1"]) == (200, "vm2")


def test_enabling_delay_keeps_the_first_answer_or_sends_an_empty_one(start_simulator):
    import threading

    sim = start_simulator(
        {"knobs": {"enable_delay": 119}, "groups": {"web": {"vms": {"vm1": {}, "vm2": {}}}}}, args=["--clock", "manual"]
    )
    got = []
    threads = [threading.Thread(target=lambda vm=vm: got.append(ask(sim.endpoints[vm]).json)) for vm in ("vm1", "vm2")]
    for thread in threads:
        thread.start()
    while not sim.get("/log")["lines"]:
        pass
    sim.advance(118)
    assert ask(sim.endpoints["vm1"], "/metadata/versions").status == 200
    assert got == []
    sim.advance(1)
    for thread in threads:
        thread.join(60)
    assert got == [{"DocumentIncarnation": 1, "Events": []}] * 2
    sim.post("/knobs", {"empty_body_until_enabled": True})
    sim.post("/disable", {"group": "web"})
    empty = ask(sim.endpoints["vm1"])
    assert (empty.status, empty.body) == (200, b"")
    sim.advance(119)
    assert ask(sim.endpoints["vm2"]).json["Events"] == []


def test_a_day_of_silence_disables_the_service_and_resets_the_incarnation(start_simulator):
    sim = start_simulator("live-migration", args=["--clock", "manual"])
    ask(sim.endpoints["vm1"])
    sim.advance(10)
    assert ask(sim.endpoints["vm1"]).json["DocumentIncarnation"] == 2
    sim.advance(86401)
    assert ask(sim.endpoints["vm2"]).json == {"DocumentIncarnation": 1, "Events": []}
    assert [line["by"] for line in sim.get("/log?what=enabled")["lines"]] == ["vm1", "vm2"]
