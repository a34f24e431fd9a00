# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Which requests the control API answers: token, Host and origin."""

from __future__ import annotations

import sys
from urllib.parse import urlsplit

import pytest

from imds_simulator.cli.commands import SERVE
from imds_simulator.cli.parsing import parse
from imds_simulator.cli.serve_command import UsageError, server_options
from support import simulator_process
from support.simulator.raw_http import send_request

TOKEN = "a-token-of-tests"
BROWSER = {"Accept": "text/html"}


@pytest.fixture(scope="module")
def guarded():
    with simulator_process.start(args=["--clock", "manual"], token=TOKEN) as running:
        yield running


def ask(simulator, path, method="GET", body=None, **headers):
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return send_request(simulator.control, path, method, named, body)


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:8168", ""])
def test_request_with_a_foreign_host_is_403(sim, host):
    for path, accept in (("/state", "*/*"), ("/", "text/html"), ("/log", "*/*"), ("/arm/subscriptions", "*/*")):
        assert ask(sim, path, Host=host, Accept=accept).status == 403
    assert ask(sim, "/faults", "DELETE", Host=host).status == 403


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost:8168", "LOCALHOST", "[::1]:80", "sim.localhost", "10.1.2.3:8168"]
)
def test_request_with_an_address_or_a_local_name_is_answered(sim, host):
    assert ask(sim, "/state", Host=host).status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"},
    ],
)
def test_change_by_another_site_is_403_and_changes_nothing(sim, headers):
    body = b'{"kind": "unavailable"}'
    assert send_request(sim.control, "/faults", "POST", headers, body).status == 403
    assert sim.get("/faults") == {"faults": []}


def test_change_by_the_page_itself_or_by_a_program_is_made(sim):
    own = {"Origin": sim.control, "Sec-Fetch-Site": "same-origin"}
    for headers in (own, {}):
        assert send_request(sim.control, "/faults", "POST", headers, b'{"kind": "gone"}').status == 201


def test_other_sites_may_link_to_the_page_but_not_read_the_state(sim):
    foreign = {"Sec-Fetch-Site": "cross-site"}
    link = {**foreign, "Sec-Fetch-Mode": "navigate", **BROWSER}
    assert send_request(sim.control, "/", headers=link).status == 200
    assert send_request(sim.control, "/state", headers=foreign).status == 403


@pytest.mark.parametrize("header", ["", "Bearer wrong-token", "Basic " + TOKEN, "Bearer " + TOKEN + "x", "Bearer \xe9"])
def test_requests_without_the_token_are_401(guarded, header):
    headers = {"Authorization": header} if header else {}
    for path in ("/state", "/log", "/login", "/nowhere"):
        answer = send_request(guarded.control, path, headers=headers)
        assert answer.status == 401 and answer.headers["WWW-Authenticate"] == "Bearer" and TOKEN not in str(answer.body)
    assert send_request(guarded.control, "/advance", "POST", headers, b'{"seconds": 5}').status == 401


def test_requests_with_the_token_are_answered_by_any_name(guarded):
    for host in ("lab.example", urlsplit(guarded.control).netloc):
        assert ask(guarded, "/state", Host=host, Authorization=f"Bearer {TOKEN}").status == 200


@pytest.mark.parametrize(
    ("arm_token", "given", "status"),
    [("", "any", 401), ("", TOKEN, 404), ("another", TOKEN, 401), ("another", "any", 401), ("another", "another", 404)],
)
def test_resource_manager_needs_the_control_token_or_its_own(guarded, arm_token, given, status):
    guarded.post("/knobs", {"arm_token": arm_token})
    answer = ask(guarded, "/arm/subscriptions/x/y", "POST", Authorization=f"Bearer {given}")
    code = {401: "InvalidAuthenticationToken", 404: "InvalidRequestUri"}[status]
    assert (answer.status, answer.json["error"]["code"]) == (status, code)


def test_health_and_files_of_the_page_need_no_token_and_set_no_cookie(guarded):
    for path in ("/health", "/", "/page.js", "/page.css"):
        answer = send_request(guarded.control, path, headers=BROWSER)
        assert answer.status == 200 and "Set-Cookie" not in answer.headers and TOKEN.encode() not in answer.body


def test_verb_sends_the_token_of_its_option(guarded, call, monkeypatch):
    command = ["state", "--control", guarded.control]
    monkeypatch.delenv("IMDS_SIMULATOR_CONTROL_TOKEN", raising=False)
    refused, answered = call(*command), call(*command, "--control-token", TOKEN)
    assert refused.code == 1 and "IMDS_SIMULATOR_CONTROL_TOKEN" in refused.err
    join = ["join", "--vm", "vm1", "--control", guarded.control, "--control-token", "another-token", "--", "true"]
    assert call(*join) == (2, "", refused.err)
    assert answered.code == 0 and '"vms"' in answered.out


def test_command_of_exec_gets_the_token():
    command = ("exec", "--quiet", "--", sys.executable, "-m", "imds_simulator", "state")
    variables = {**simulator_process.environment(), "IMDS_SIMULATOR_CONTROL_TOKEN": TOKEN}
    ran = simulator_process.run(*command, env=variables)
    assert ran.returncode == 0 and '"vms"' in ran.stdout, ran.stderr


@pytest.mark.parametrize("more", [["--control-token", TOKEN], ["--control-anywhere"]])
def test_address_that_is_not_loopback_needs_the_token_or_permission(more):
    address = ["--control", "0.0.0.0:0"]
    assert server_options(parse(SERVE, [*address, *more])).control.host == "0.0.0.0"
    with pytest.raises(UsageError):
        server_options(parse(SERVE, address))
