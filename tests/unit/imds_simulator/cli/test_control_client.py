# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Verbs whose ``--control`` names another server than the control API of a simulator, or that it refuses."""

from __future__ import annotations

import pytest

from support.ready_hooks.web_server import Answer, WebServer
from support.transport.replies import Raw, serving

FOREIGN = "its answer is not that of a simulator of this version; check --control"
VERBS = (
    ["state"],
    ["events"],
    ["approve", "e"],
    ["wait", "e", "--timeout", "0"],
    ["log"],
    ["report"],
    ["fault", "list"],
    ["join", "--vm", "vm1", "--", "true"],
)


def foreign(control, words):
    """Return what a verb does whose ``control`` is not that of a simulator."""
    return (2 if words[0] == "join" else 1, "", f"imds_simulator: {control}: {FOREIGN}\n")


@pytest.fixture
def send(call):
    """Return a function that runs a verb, with a control address."""
    return lambda control, verb, *words: call(verb, "--control", control, *words)


@pytest.mark.parametrize(
    "status, body",
    [
        (200, b'{"vms": {}}'),
        (200, b""),
        (302, b""),
        (404, b'{"error": "Not found"}'),
        (404, b"<html>\n<h1>Not Found</h1>\n</html>"),
    ],
)
def test_answer_of_another_server_is_one_line_and_an_exit_code(send, status, body):
    with WebServer("127.0.0.1") as server:
        server.otherwise = lambda _request: Answer(status, body, {"Location": "/elsewhere"})
        for words in VERBS:
            assert send(server.url, *words) == foreign(server.url, words), words


def test_program_that_does_not_speak_http_is_named_in_one_line(send):
    with serving(Raw(b"SSH-2.0-\x1b\r\n")) as server:
        code, out, problem = send(server.url, "state")
    assert (code, out) == (1, "") and problem.count("\n") == 1
    assert "SSH-2.0-" in problem and "\x1b" not in problem and problem.endswith("check --control\n")


def test_other_addresses_of_the_simulator_are_not_its_control_address(sim, send):
    of_resource_manager = f"{sim.control}/arm"
    for control, words in [(of_resource_manager, ["events"]), *[(sim.endpoint, each) for each in VERBS]]:
        assert send(control, *words) == foreign(control, words), words


def test_errors_of_the_control_api_are_told_as_they_are(sim, send):
    problem = "imds_simulator: there is no event never; the verb events (GET /events) lists the events\n"
    assert send(sim.control, "cancel", "never") == (1, "", problem)


@pytest.mark.parametrize("vm, shown", [("pool3", "pool3"), ("pool\x1b3", r"pool\x1b3")])
def test_vm_that_cannot_be_joined_is_one_line_and_exit_2(sim, send, vm, shown):
    control = sim.control
    problem = f"imds_simulator: --vm: {control}: there is no VM {shown} (did you mean pool_3?)\n"
    assert send(control, "join", "--vm", vm, "--", "true") == (2, "", problem)
