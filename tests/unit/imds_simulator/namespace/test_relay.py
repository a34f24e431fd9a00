# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The relay between a namespace and the simulator: half closes, resets, and the end of the program.

cli/test_join_command.py has its source addresses, and connections that the simulator refuses.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from imds_simulator.namespace.relay import relay


@pytest.fixture
def relayed():
    """Return the client's and the server's end of a connection through a relay, and a function that ends the relay."""
    ended = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_server(("127.0.0.1", 0)) as sock:

        async def run():
            await relay(sock, server.getsockname())
            await asyncio.to_thread(ended.wait)

        def end():
            ended.set()
            program.join(60)

        program = threading.Thread(target=lambda: asyncio.run(run()))
        server.settimeout(60)
        with socket.create_connection(sock.getsockname(), 60) as client:
            program.start()
            try:
                with server.accept()[0] as far:
                    far.settimeout(60)
                    yield client, far, end
            finally:
                end()


def read_all(sock):
    return b"".join(iter(lambda: sock.recv(65536), b""))


def test_a_half_close_passes_and_the_answer_comes_back(relayed):
    client, server, _end = relayed

    def ask():
        client.sendall(b"x" * 1_000_000 + b"y")
        client.shutdown(socket.SHUT_WR)
        return read_all(client)

    with ThreadPoolExecutor() as threads:
        answer = threads.submit(ask)
        server.sendall(read_all(server)[::-1])
        server.close()
        assert answer.result(60) == b"y" + b"x" * 1_000_000


@pytest.mark.parametrize("client_resets", [True, False])
def test_a_reset_of_one_end_is_a_reset_for_the_other(relayed, client_resets):
    client, server, _end = relayed
    resets, other = (client, server) if client_resets else (server, client)
    other.sendall(b"x")
    assert resets.recv(1) == b"x"
    resets.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    resets.close()
    with pytest.raises(ConnectionResetError):
        other.recv(1)


def test_the_end_of_the_program_ends_open_connections_without_a_problem(relayed, caplog):
    _client, server, end = relayed
    end()
    assert server.recv(1) == b""
    assert [each.getMessage() for each in caplog.records] == []
