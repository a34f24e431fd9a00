# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The control socket against clients that mean no good: they get no answer, and the loop goes on."""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from hook_runner.service.control_requests import ControlRequests
from hook_runner.service.control_socket import NAME, ControlSocket, send_request

# seconds that the clients of all sockets may cost the main loop
AT_MOST = 0.05


class Echo(ControlRequests):
    """Answers with the request, with the number of the client's user, or with more than a client takes at once."""

    def __init__(self) -> None:
        """Need no daemon."""

    def answer(self, request: Mapping[str, Any], uid: int) -> Mapping[str, Any]:
        answers: Mapping[str, Mapping[str, Any]] = {"user": {"uid": uid}, "much": {"text": "x" * (1 << 24)}}
        return answers.get(request["ask"], request)


@pytest.fixture
def control(tmp_path: Path) -> Iterator[ControlSocket]:
    made = ControlSocket(str(tmp_path), NAME, None, Echo())
    made.listen()
    yield made
    made.close()


def client(control: ControlSocket) -> socket.socket:
    made = socket.socket(socket.AF_UNIX)
    made.connect(control.path)
    return made


def seconds_to_serve(control: ControlSocket) -> float:
    """Return the least seconds of some calls: a machine that is busy may delay one."""
    took = []
    for _call in range(5):
        began = time.monotonic()
        control.serve()
        took.append(time.monotonic() - began)
    return min(took)


@pytest.mark.parametrize("part", [b"", b'{"text": "x'])
def test_part_of_an_answer_is_an_error(tmp_path: Path, part: bytes) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / NAME))
        listener.listen()

        def answer() -> None:
            channel, _address = listener.accept()
            with channel:
                channel.recv(65536)
                channel.sendall(part)

        server = threading.Thread(target=answer)
        server.start()
        with pytest.raises(OSError, match="closed the connection before the end of its answer"):
            send_request(str(tmp_path), {"ask": "status"})
        server.join()


def test_question_that_has_arrived_is_answered_in_one_loop_of_the_daemon(control: ControlSocket) -> None:
    """A loop takes seconds while the disk is slow."""
    with client(control) as asking:
        asking.sendall(b'{"ask": "status"}\n')
        control.serve()
        asking.settimeout(0)
        assert json.loads(asking.recv(100)) == {"ask": "status"}


@pytest.mark.parametrize("question", [b"[" * 60000 + b"\n", b"[]\n", b"\xff\n", b"{}" * 40000, b"\n"])
def test_nonsense_gets_no_answer(control: ControlSocket, question: bytes) -> None:
    with client(control) as asking:
        asking.sendall(question)
        for _call in range(5):
            control.serve()
        with contextlib.suppress(ConnectionResetError):  # it was closed before all had been read
            assert asking.recv(100) == b""


def test_silent_clients_do_not_hold_the_loop(control: ControlSocket) -> None:
    with contextlib.ExitStack() as held:
        clients = [held.enter_context(client(control)) for _client in range(5)]
        assert seconds_to_serve(control) < AT_MOST
        for asking in clients:
            asking.send(b" ")
        assert seconds_to_serve(control) < AT_MOST


def test_the_oldest_client_makes_room_for_a_further_one(control: ControlSocket) -> None:
    with contextlib.ExitStack() as held:
        silent = []
        for _client in range(8):
            silent.append(held.enter_context(client(control)))
            control.serve()
        asking = held.enter_context(client(control))
        asking.sendall(b'{"ask": "status"}\n')
        for _call in range(3):
            control.serve()
        assert asking.recv(100) == b'{"ask": "status"}\n' and silent[0].recv(1) == b""
        for other in silent[1:]:
            other.setblocking(False)
            with pytest.raises(BlockingIOError):
                other.recv(1)


def turns_until_answered(control: ControlSocket, folder: Path, text: str = "") -> int:
    """Ask a question in a thread; return the turns of the main loop until the answer."""
    question = {"ask": "status", "text": text}
    answers: list[object] = []
    asking = threading.Thread(target=lambda: answers.append(send_request(str(folder), question)))
    asking.start()
    turns, until = 0, time.monotonic() + 20
    while asking.is_alive() and time.monotonic() < until:
        turns += bool(select.select([control], [], [], 0.1)[0])
        control.serve()
    asking.join()
    assert answers == [question]
    return turns


def test_a_long_question_is_answered(control: ControlSocket, tmp_path: Path) -> None:
    assert turns_until_answered(control, tmp_path, "x" * 60000)


@pytest.mark.parametrize("clients, request_", [(40, b""), (300, b'{"ask": "status"}\n')], ids=["silent", "asking"])
def test_a_request_waits_for_few_turns_behind_other_clients(
    control: ControlSocket, tmp_path: Path, clients: int, request_: bytes
) -> None:
    with contextlib.ExitStack() as held:
        for _client in range(clients):
            other = held.enter_context(socket.socket(socket.AF_UNIX))
            other.setblocking(False)
            with contextlib.suppress(OSError):
                other.connect(control.path)
                other.send(request_)
        assert 0 < turns_until_answered(control, tmp_path) < 100


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can connect as another user")
def test_no_user_takes_the_place_of_a_client_of_another_user() -> None:
    # another user may not enter the folders of pytest
    with tempfile.TemporaryDirectory(prefix="u", dir="/tmp") as folder, contextlib.ExitStack() as held:
        os.chmod(folder, 0o755)
        control = ControlSocket(folder, NAME, None, Echo())
        control.listen()
        held.callback(control.close)
        os.chmod(control.path, 0o666)
        asking = held.enter_context(client(control))
        control.serve()
        os.seteuid(65534)
        try:
            for _client in range(20):
                held.enter_context(client(control))
                control.serve()
        finally:
            os.seteuid(0)
        asking.sendall(b'{"ask": "user"}\n')
        control.serve()
        assert asking.recv(100) == b'{"uid": 0}\n'


def test_a_client_that_does_not_take_its_answer_does_not_hold_the_loop(control: ControlSocket) -> None:
    with client(control) as asking:
        asking.sendall(b'{"ask": "much"}\n')
        assert seconds_to_serve(control) < AT_MOST
