# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Verbs whose ``--control`` names another server than the control API of a simulator."""

from __future__ import annotations

import http.server
import threading

import pytest

from imds_simulator.__main__ import main

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


@pytest.fixture
def other_server():
    """Return a function that starts a server with one answer to everything, and returns its URL."""
    servers = []

    def start(status, body):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                self.send_response(status)
                self.send_header("Location", "/elsewhere")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_POST = do_GET

            def log_message(self, *_words):
                pass

        servers.append(http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler))
        threading.Thread(target=servers[-1].serve_forever, args=(0.01,)).start()
        return f"http://127.0.0.1:{servers[-1].server_address[1]}"

    yield start
    for each in servers:
        each.shutdown()
        each.server_close()


def exit_code_and_problem(capsys, control, words):
    code = main([*words, "--control", control])
    out, err = capsys.readouterr()
    assert out == ""
    return code, err


@pytest.mark.parametrize(
    "status, body",
    [
        (200, b'{"a": 1}'),
        (200, b"[]"),
        (200, b"5"),
        (200, b""),
        (200, b"[" * 100_000),
        (302, b""),
        (400, b'{"error": "Bad request"}'),
        (404, b'{"error": "Not found"}'),
        (404, b"<html>\n<h1>Not Found</h1>\n</html>"),
    ],
)
def test_answer_of_another_server_is_one_line_and_exit_1(other_server, capsys, status, body):
    control = other_server(status, body)
    for words in VERBS:
        assert exit_code_and_problem(capsys, control, words) == (1, f"imds_simulator: {control}: {FOREIGN}\n"), words


def test_imds_address_of_the_simulator_is_not_its_control_address(frozen_simulator, capsys):
    control = frozen_simulator.endpoint
    for words in VERBS:
        assert exit_code_and_problem(capsys, control, words) == (1, f"imds_simulator: {control}: {FOREIGN}\n"), words


def test_address_of_the_resource_manager_is_not_the_control_address(frozen_simulator, capsys):
    control = f"{frozen_simulator.control}/arm"
    assert exit_code_and_problem(capsys, control, ["events"]) == (1, f"imds_simulator: {control}: {FOREIGN}\n")


def test_errors_of_the_control_api_are_told_as_they_are(frozen_simulator, capsys):
    code, problem = exit_code_and_problem(capsys, frozen_simulator.control, ["cancel", "never"])
    expected = "imds_simulator: there is no event never; the verb events (GET /events) lists the events\n"
    assert (code, problem) == (1, expected)


def test_scheme_of_the_control_address_is_http_or_https(capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["events", "--control", "ftp://127.0.0.1"])
    assert "--control: 'ftp://127.0.0.1' is not HOST:PORT, http://HOST:PORT or https://" in capsys.readouterr().err
