# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Relays the connections at a socket of the namespace to an address outside of it."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct

_SIZE = 65536


async def relay(
    sock: socket.socket, address: tuple[str, int], local: tuple[str, int] | None = None
) -> asyncio.AbstractServer:
    """Accept connections at ``sock``, which is bound, and relay their bytes, half closes and resets.

    The connections to ``address`` come from ``local``, if it is given. One that ``address`` refuses is reset.
    """
    connections: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # before Python 3.12 asyncio prints a traceback when a task that it has created for a coroutine is cancelled
        connection = asyncio.create_task(serve(reader, writer))
        connections.add(connection)
        connection.add_done_callback(connections.discard)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers = [writer]
        try:
            far_reader, far_writer = await asyncio.open_connection(*address, local_addr=local)
            writers.append(far_writer)
            await asyncio.gather(_copy(reader, far_writer), _copy(far_reader, writer))
        except OSError:
            for each in writers:
                _reset(each)
        finally:
            for each in writers:
                each.close()

    return await asyncio.start_server(accept, sock=sock)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(_SIZE):
        writer.write(data)
        await writer.drain()
    writer.write_eof()


def _reset(writer: asyncio.StreamWriter) -> None:
    # without it the other side would see the end of a connection, and not an error
    with contextlib.suppress(OSError):
        linger = struct.pack("ii", 1, 0)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    writer.transport.abort()
