# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A server that answers, delays, breaks or floods each request as a list of replies says."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Iterator
from typing import NamedTuple

FIN = "FIN"
RST = "RST"

# no reply of this server lasts longer
_LONGEST = 60.0


class Answer(NamedTuple):
    """A complete answer with a Content-Length, unless the headers name a Transfer-Encoding.

    Attributes:
        headers: further header lines.
        end: FIN or RST end the connection after it, without an announcement; "" keeps it.
    """

    status: int = 200
    body: bytes = b""
    headers: tuple[str, ...] = ()
    end: str = ""

    def send(self, connection: socket.socket, stopped: threading.Event) -> bool:
        """Send the answer; return True if the connection can have another request."""
        chunked = any(line.lower().startswith("transfer-encoding:") for line in self.headers)
        # a 304 has no body, and its length is that of the document
        length = () if chunked or self.status == 304 else (f"Content-Length: {len(self.body)}",)
        connection.sendall(_head(self.status, (*length, *self.headers)) + self.body)
        if self.end == RST:
            _reset(connection)
        return not self.end


class CutShort(NamedTuple):
    """An answer with status 200 that announces more bytes than it has; a reset ends it, or else the end of stream."""

    body: bytes
    announced: int
    reset: bool = False

    def send(self, connection: socket.socket, stopped: threading.Event) -> bool:
        connection.sendall(_head(200, (f"Content-Length: {self.announced}",)) + self.body)
        if self.reset:
            # the client has to get the bytes before the reset discards them
            stopped.wait(0.3)
            _reset(connection)
        return False


class Trickle(NamedTuple):
    """An answer that comes piece by piece.

    Attributes:
        head: the part that is sent at once.
        pause: seconds between the pieces that follow.
        piece: what follows again and again.
    """

    head: bytes
    pause: float = 0.1
    piece: bytes = b"x"

    def send(self, connection: socket.socket, stopped: threading.Event) -> bool:
        """Send one piece after the other until the client closes the connection."""
        connection.sendall(self.head)
        for _piece in range(int(_LONGEST / self.pause)):
            if stopped.wait(self.pause):
                break
            connection.sendall(self.piece)
        return False


class Flood(NamedTuple):
    """An answer without a length that is sent until the client closes the connection, at most these many bytes."""

    size: int

    def send(self, connection: socket.socket, stopped: threading.Event) -> bool:
        connection.sendall(_head(200, ("Connection: close",)))
        piece = b"x" * 65536
        for _piece in range(self.size // len(piece)):
            connection.sendall(piece)
        return False


class Raw(NamedTuple):
    """Bytes that are sent instead of an answer; then the connection ends, by FIN or RST."""

    content: bytes = b""
    end: str = FIN

    def send(self, connection: socket.socket, stopped: threading.Event) -> bool:
        connection.sendall(self.content)
        if self.end == RST:
            _reset(connection)
        return False


class Hang(NamedTuple):
    """No answer, on a connection that stays open."""

    def send(self, connection: socket.socket, stopped: threading.Event) -> bool:
        """Wait for the end of the server."""
        stopped.wait(_LONGEST)
        return False


Reply = Answer | CutShort | Trickle | Flood | Raw | Hang


class Received(NamedTuple):
    """A request as the server read it; the names of headers are in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


class ReplyServer:
    """The server. Each request takes one of ``replies``; the last one is repeated.

    A connection that ends without a request takes none.

    Attributes:
        url: of the server, without a path.
        received: all requests, in order.
        connections: how many were accepted.
        ended: is released for each connection that has ended.
    """

    def __init__(self, listener: socket.socket, replies: tuple[Reply, ...]) -> None:
        self.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        self.received: list[Received] = []
        self.connections = 0
        self.ended = threading.Semaphore(0)
        self._listener = listener
        self._replies = replies
        self._lock = threading.Lock()
        self._stopped = threading.Event()

    def serve(self) -> None:
        """Accept connections until the listener is closed."""
        with contextlib.suppress(OSError):
            while True:
                connection, _address = self._listener.accept()
                self.connections += 1
                threading.Thread(target=self._serve_connection, args=[connection], daemon=True).start()

    def stop(self) -> None:
        """End the replies that are under way."""
        self._stopped.set()

    def _serve_connection(self, connection: socket.socket) -> None:
        connection.settimeout(_LONGEST)
        with connection, contextlib.suppress(OSError):
            self._converse(connection)
        self.ended.release()

    def _converse(self, connection: socket.socket) -> None:
        with connection.makefile("rb") as incoming:
            while True:
                first = incoming.readline().decode("latin-1").split()
                if not first:
                    return
                headers = {}
                for line in iter(incoming.readline, b"\r\n"):
                    name, _colon, value = line.decode("latin-1").partition(":")
                    headers[name.lower()] = value.strip()
                body = incoming.read(int(headers.get("content-length", 0)))
                with self._lock:
                    reply = self._replies[min(len(self.received), len(self._replies) - 1)]
                    self.received.append(Received(first[0], first[1], headers, body))
                if not reply.send(connection, self._stopped):
                    return


def _head(status: int, lines: tuple[str, ...]) -> bytes:
    return "\r\n".join((f"HTTP/1.1 {status} X", *lines, "", "")).encode("latin-1")


def _reset(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


@contextlib.contextmanager
def serving(*replies: Reply) -> Iterator[ReplyServer]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = ReplyServer(listener, replies)
        threading.Thread(target=server.serve, daemon=True).start()
        try:
            yield server
        finally:
            server.stop()
            # close() alone does not end a thread that waits in accept()
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def accepting_nothing() -> Iterator[str]:
    """Yield the URL of a server whose queue of connections is full, so that a further one is not set up."""
    with (
        socket.create_server(("127.0.0.1", 0), backlog=0) as listener,
        socket.socket() as first,
        socket.socket() as second,
    ):
        for filler in (first, second):
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
        # the kernel sets up connections on its own; without this pause a third one could still fit
        threading.Event().wait(0.05)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
