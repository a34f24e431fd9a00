# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The control socket against clients that mean no good: they get no answer, and the loop goes on."""

from __future__ import annotations

import select
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hook_runner.service.control_socket import ControlSocket, send_request

SOON = 10.0


@pytest.fixture
def control(tmp_path: Path) -> Iterator[ControlSocket]:
    made = ControlSocket(str(tmp_path), None, lambda request, user: dict(request))
    made.listen()
    yield made
    made.close()


def client(control: ControlSocket) -> socket.socket:
    made = socket.socket(socket.AF_UNIX)
    made.connect(control.path)
    return made


def seconds_to_serve(control: ControlSocket) -> float:
    """Without a limit it would be for ever, so that a busy machine has time enough below `SOON`."""
    began = time.monotonic()
    control.answer_one()
    return time.monotonic() - began


def test_a_question_is_answered(control: ControlSocket, tmp_path: Path) -> None:
    def serve() -> None:
        select.select([control], [], [], 30)
        control.answer_one()

    server = threading.Thread(target=serve)
    server.start()
    assert send_request(str(tmp_path), {"ask": "status"}) == {"ask": "status"}
    server.join()


@pytest.mark.parametrize("question", [b"[" * 60000 + b"\n", b"[]\n", b"\xff\n", b"{}" * 40000, b"\n"])
def test_nonsense_gets_no_answer(control: ControlSocket, question: bytes) -> None:
    with client(control) as asking:
        asking.sendall(question)
        control.answer_one()
        try:
            assert asking.recv(100) == b""
        except ConnectionResetError:
            pass  # it was closed before all had been read


def test_a_silent_client_is_left_after_half_a_second(control: ControlSocket) -> None:
    with client(control):
        assert 0.4 <= seconds_to_serve(control) < SOON


def test_one_byte_at_a_time_does_not_hold_the_loop(control: ControlSocket) -> None:
    with client(control) as asking:
        over = threading.Event()

        def drip() -> None:
            while not over.wait(0.1):
                try:
                    asking.send(b" ")
                except OSError:
                    return

        dripping = threading.Thread(target=drip)
        dripping.start()
        took = seconds_to_serve(control)
        over.set()
        dripping.join()
    assert took < SOON


def test_a_client_that_does_not_take_its_answer_is_left(control: ControlSocket) -> None:
    control._answer = lambda question, who: {"text": "x" * (1 << 24)}
    with client(control) as asking:
        asking.sendall(b"{}\n")
        assert seconds_to_serve(control) < SOON
