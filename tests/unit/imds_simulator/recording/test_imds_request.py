# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The recorder's request ends in time, whatever the server sends."""

from __future__ import annotations

import contextlib
import socket
import threading
import time

import pytest

from imds_simulator.recording.imds_request import Reply, get
from imds_simulator.scenario.groups import Address

OK = b"HTTP/1.1 200 OK\r\n"


def ask(first: bytes, repeated: bytes = b"", pause: float = 0.0, timeout: float = 10.0) -> tuple[Reply, int]:
    """Ask a server that sends ``first`` and, 400 times at most, ``repeated``.

    Return the outcome, and how often the server sent ``repeated`` until the client closed the connection.
    """
    sent = 0

    def serve() -> None:
        nonlocal sent
        connection, _address = listener.accept()
        with connection, contextlib.suppress(OSError):
            connection.recv(4096)
            connection.sendall(first)
            while repeated and sent < 400:
                connection.sendall(repeated)
                sent += 1
                time.sleep(pause)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        reply = get(Address(*listener.getsockname()), "/metadata", timeout)
        thread.join()
    return reply, sent


@pytest.mark.parametrize(
    ("first", "repeated"),
    [
        (OK + b"Content-Length: 1000\r\n\r\n", b"x"),
        (OK, b"X: y\r\n"),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    ],
)
def test_answer_that_trickles_ends_at_the_deadline(first: bytes, repeated: bytes) -> None:
    reply, sent = ask(first, repeated, pause=0.05, timeout=0.2)
    assert (reply.status, reply.error) == (0, "timeout") and sent < 90


@pytest.mark.parametrize(
    ("first", "repeated", "error"),
    [
        (OK + b"\r\n", b"x" * 1_000_000, "too-large"),
        (b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\n\r\n", b"x" * 1_000_000, "too-large"),
        (OK + b"Content-Length: 9\r\n\r\nab", b"", "IncompleteRead"),
        (b"", b"", "RemoteDisconnected"),
        (b"hello\r\n", b"", "BadStatusLine"),
    ],
)
def test_answer_that_never_ends_or_is_not_whole_is_an_error(first: bytes, repeated: bytes, error: str) -> None:
    reply, sent = ask(first, repeated)
    assert (reply.status, reply.error) == (0, error) and sent < 100


@pytest.mark.parametrize("location", [b"http://127.0.0.1:1/", b"http://[", b"//"])
def test_redirect_is_recorded_and_not_followed(location: bytes) -> None:
    reply, _sent = ask(b"HTTP/1.1 302 Found\r\nLocation: " + location + b"\r\nContent-Length: 3\r\n\r\nabc")
    assert (reply.status, reply.body, reply.headers["location"]) == (302, b"abc", location.decode())


def test_proxy_of_the_environment_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    reply, _sent = ask(OK + b"Content-Length: 2\r\n\r\nok")
    assert (reply.status, reply.body) == (200, b"ok")
