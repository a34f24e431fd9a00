# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The relay between a namespace and the simulator: half closes, resets, and the end of the program.

cli/test_join_command.py has its source addresses, and connections that the simulator refuses.
"""

from __future__ import annotations

import asyncio
import socket
import struct

import pytest

from imds_simulator.namespace.relay import relay


def bound():
    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    return sock


def run_with_relay(target, client):
    """Run ``client(reader, writer)`` with a connection through a relay to a server that runs ``target``."""

    async def run():
        server = await asyncio.start_server(target, "127.0.0.1", 0)
        sock = bound()
        address = sock.getsockname()
        relaying = await relay(sock, server.sockets[0].getsockname())
        try:
            return await client(*await asyncio.open_connection(*address))
        finally:
            relaying.close()
            server.close()

    return asyncio.run(run())


def reset(writer):
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


def test_a_half_close_passes_and_the_answer_comes_back():
    async def target(reader, writer):
        writer.write((await reader.read())[::-1])
        writer.close()

    async def client(reader, writer):
        writer.write(b"x" * 1_000_000 + b"y")
        writer.write_eof()
        return await reader.read()

    assert run_with_relay(target, client) == b"y" + b"x" * 1_000_000


def test_a_reset_of_the_server_is_a_reset_for_the_client():
    async def target(reader, writer):
        await reader.read(1)
        reset(writer)

    async def client(reader, writer):
        writer.write(b"GET")
        return await reader.read()

    with pytest.raises(ConnectionResetError):
        run_with_relay(target, client)


def test_a_reset_of_the_client_is_a_reset_for_the_server():
    ends = asyncio.Queue()

    async def target(reader, writer):
        writer.write(b"ready")
        try:
            await reader.read()
            ends.put_nowait("closed")
        except ConnectionResetError:
            ends.put_nowait("reset")

    async def client(reader, writer):
        assert await reader.readexactly(5) == b"ready"
        reset(writer)
        return await asyncio.wait_for(ends.get(), 60)

    assert run_with_relay(target, client) == "reset"


def test_the_end_of_the_program_ends_open_connections_without_a_problem(caplog):
    async def run(server):
        sock = bound()
        address = sock.getsockname()
        await relay(sock, server.getsockname())
        connection = await asyncio.open_connection(*address)
        far, _address = await asyncio.get_running_loop().sock_accept(server)
        return connection, far

    with bound() as server:
        server.listen()
        server.setblocking(False)
        _connection, far = asyncio.run(run(server))
        with far:
            far.settimeout(60)
            assert far.recv(1) == b""
    assert [each.getMessage() for each in caplog.records] == []
