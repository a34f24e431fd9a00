# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A server that keeps connections, and answers or breaks them by a list of steps."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

FIN = "FIN"
RST = "RST"


class Step(NamedTuple):
    """The reaction to one request.

    Attributes:
        body: of the answer; None for a connection that ends without an answer.
        headers: further header lines.
        part: how many bytes of the answer are sent; None for all.
        then: FIN or RST end the connection after it, "" keeps it.
    """

    body: bytes | None = b""
    status: int = 200
    headers: tuple[str, ...] = ()
    part: int | None = None
    then: str = ""


class Scripted:
    """The server. Each request takes one of ``steps``; the last one is repeated.

    Attributes:
        endpoint: its base URL.
        requests: first line of each request that was read, in order.
        connections: how many were accepted.
        ended: how many connections the server has ended.
    """

    def __init__(self, listener: socket.socket, steps: list[Step]) -> None:
        self.steps = steps
        self.endpoint = f"http://127.0.0.1:{listener.getsockname()[1]}"
        self.requests: list[str] = []
        self.connections = 0
        self.ended = threading.Semaphore(0)
        self._listener = listener

    def serve(self) -> None:
        """Serve one connection after the other until the listener is closed."""
        with contextlib.suppress(OSError):
            while True:
                connection, _address = self._listener.accept()
                self.connections += 1
                with connection, contextlib.suppress(OSError):
                    self._converse(connection)
                self.ended.release()

    def _converse(self, connection: socket.socket) -> None:
        with connection.makefile("rb") as incoming:
            while True:
                first = incoming.readline()
                if not first:
                    return
                length = 0
                for line in iter(incoming.readline, b"\r\n"):
                    name, _colon, value = line.partition(b":")
                    length = int(value) if name.lower() == b"content-length" else length
                incoming.read(length)
                self.requests.append(first.decode("ascii").rsplit(" ", 1)[0])
                step = self.steps.pop(0) if len(self.steps) > 1 else self.steps[0]
                if step.body is not None:
                    lines = [
                        f"HTTP/1.1 {step.status} X",
                        f"Content-Length: {len(step.body)}",
                        *step.headers,
                        "",
                        "",
                    ]
                    connection.sendall(("\r\n".join(lines).encode("ascii") + step.body)[: step.part])
                if step.then == RST:
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                if step.then:
                    return


@contextlib.contextmanager
def scripted(*steps: Step | dict[str, Any]) -> Iterator[Scripted]:
    """Run such a server during the block; a dictionary is a good answer with that JSON."""
    taken = [Step(json.dumps(step).encode()) if isinstance(step, dict) else step for step in steps]
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = Scripted(listener, taken)
        threading.Thread(target=server.serve, daemon=True).start()
        try:
            yield server
        finally:
            # close() alone does not end a thread that waits in accept()
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
