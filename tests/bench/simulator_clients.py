# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""A thousand VMs that poll a server, each on a connection from a source address of its own."""

from __future__ import annotations

import select
import socket
import time

from simulator_servers import source_address

CONNECT_TIMEOUT = 10.0
ANSWER_TIMEOUT = 10.0
_POLL = (
    b"GET /metadata/scheduledevents?api-version=2020-07-01 HTTP/1.1\r\nHost: 169.254.169.254\r\nMetadata: true\r\n\r\n"
)


class Clients:
    def __init__(self, port: int, count: int) -> None:
        self._poll = select.epoll()
        self._partial: dict[int, bytes] = {}
        self._by_descriptor: dict[int, socket.socket] = {}
        for number in range(count):
            connection = socket.create_connection(("127.0.0.1", port), CONNECT_TIMEOUT, (source_address(number), 0))
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._by_descriptor[connection.fileno()] = connection
            self._poll.register(connection, select.EPOLLIN)
        self._descriptors = list(self._by_descriptor)

    def close(self) -> None:
        self._poll.close()
        for connection in self._by_descriptor.values():
            connection.close()

    def saturate(self, seconds: float) -> int:
        """Send requests on all connections as soon as they are answered; return the number of answers."""
        done, end = 0, time.monotonic() + seconds
        for descriptor in self._descriptors:
            self._send(descriptor)
        while self._partial:
            answered = self._answered(0.1)
            now = time.monotonic()
            if now > end + ANSWER_TIMEOUT:
                raise SystemExit(f"{len(self._partial)} answers never came")
            if now < end:
                done += len(answered)
                for descriptor in answered:
                    self._send(descriptor)
        return done

    def pace(self, seconds: float) -> list[float]:
        """Send one request a second on each connection, evenly spread; return latencies in seconds.

        A latency counts from the moment at which the request was due. Waits actively, because a sleep
        would add up to a millisecond to each latency.
        """
        latencies: list[float] = []
        count, began = len(self._descriptors), time.monotonic()
        total, sent = int(seconds * count), 0
        due: dict[int, float] = {}
        while len(latencies) < total:
            now = time.monotonic()
            if now > began + seconds + ANSWER_TIMEOUT:
                raise SystemExit(f"{total - len(latencies)} answers never came")
            while sent < total and began + sent / count <= now:
                descriptor = self._descriptors[sent % count]
                if descriptor in due:
                    break
                due[descriptor] = began + sent / count
                self._send(descriptor)
                sent += 1
            answered = self._answered(0)
            now = time.monotonic()
            latencies += [now - due.pop(descriptor) for descriptor in answered]
        return latencies

    def _send(self, descriptor: int) -> None:

        self._partial[descriptor] = b""
        self._by_descriptor[descriptor].send(_POLL)

    def _answered(self, timeout: float) -> list[int]:
        """Read what has arrived and return the descriptors whose answers are complete."""
        answered = []
        for descriptor, _event in self._poll.poll(timeout):
            data = self._by_descriptor[descriptor].recv(65536)
            if not data:
                raise SystemExit("the server closed a connection")
            data = self._partial[descriptor] + data
            self._partial[descriptor] = data
            if _is_complete(data):
                if not data.startswith(b"HTTP/1.1 200"):
                    raise SystemExit(f"the server answered {data[:60]!r}")
                del self._partial[descriptor]
                answered.append(descriptor)
        return answered


def _is_complete(answer: bytes) -> bool:
    end = answer.find(b"\r\n\r\n")
    if end < 0:
        return False
    name = answer.find(b"Content-Length: ")
    return len(answer) - end - 4 >= int(answer[name + 16 : answer.index(b"\r", name)])
