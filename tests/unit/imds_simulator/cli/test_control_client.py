# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Verbs whose ``--control`` names another server than the control API of a simulator."""

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
)


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
def test_answer_of_another_server_is_one_line_and_exit_1(call, status, body):
    with WebServer("127.0.0.1") as server:
        server.otherwise = lambda _request: Answer(status, body, {"Location": "/elsewhere"})
        for words in VERBS:
            expected = (1, "", f"imds_simulator: {server.url}: {FOREIGN}\n")
            assert call(*words, "--control", server.url) == expected, words


def test_program_that_does_not_speak_http_is_named_in_one_line(call):
    with serving(Raw(b"SSH-2.0-\x1b\r\n")) as server:
        code, out, problem = call("state", "--control", server.url)
    assert (code, out) == (1, "") and problem.count("\n") == 1
    assert "SSH-2.0-" in problem and "\x1b" not in problem and problem.endswith("check --control\n")


def test_other_addresses_of_the_simulator_are_not_its_control_address(frozen_simulator, call):
    of_resource_manager = f"{frozen_simulator.control}/arm"
    for control, words in [(of_resource_manager, ["events"]), *[(frozen_simulator.endpoint, each) for each in VERBS]]:
        expected = (1, "", f"imds_simulator: {control}: {FOREIGN}\n")
        assert call(*words, "--control", control) == expected, words


def test_errors_of_the_control_api_are_told_as_they_are(frozen_simulator, call):
    problem = "imds_simulator: there is no event never; the verb events (GET /events) lists the events\n"
    assert call("cancel", "never", "--control", frozen_simulator.control) == (1, "", problem)
