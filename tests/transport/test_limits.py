# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Nothing holds a caller longer than was agreed, however it is done."""

from __future__ import annotations

import socket
import threading
import time

import pytest

from azure_scheduled_events import Imds, ImdsUnreachable
from support.simulator_process import Simulator, reserved_port
from support.transport.fault_helpers import asked, fault, raw_server, schedule

# seconds: many times the limits that are tried here, for a busy machine, and far less than the
# answers of these tests would take
MUCH_LONGER = 8


class Watch:
    """The real clock, which a test can set forward."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> float:
        return time.monotonic() + self.ahead


def seconds(action: object) -> float:
    started = time.monotonic()
    with pytest.raises(ImdsUnreachable):
        action()  # type: ignore[operator]
    return time.monotonic() - started


@pytest.mark.parametrize(
    "kind, options", [("trickle", {"bytes_per_second": 4}), ("trickle-header", {"bytes_per_second": 4}), ("hang", {})]
)
def test_a_slow_answer_ends_with_the_limit_of_the_whole(
    azure: Simulator, endpoint: str, kind: str, options: dict[str, object]
) -> None:
    schedule(azure)
    imds = Imds(endpoint, timeout=0.6)
    imds.events()
    fault(azure, kind, **options)
    assert 0.5 <= seconds(imds.events) < MUCH_LONGER


def test_a_trickling_answer_is_limited_from_its_first_byte_even_on_the_first_call(
    azure: Simulator, endpoint: str
) -> None:
    fault(azure, "trickle-header", bytes_per_second=4)
    assert 0.5 <= seconds(Imds(endpoint, timeout=0.6, first_timeout=60).events) < MUCH_LONGER


def test_after_a_limit_the_next_call_is_not_given_the_rest_of_the_last_answer(azure: Simulator, endpoint: str) -> None:
    schedule(azure, description="x" * 300)
    imds = Imds(endpoint)
    imds.events()
    fault(azure, "trickle", bytes_per_second=50)
    seconds(lambda: imds.events(within=0.4))
    azure.delete("/faults")
    assert len(imds.events().events) == 1


def test_the_first_answer_has_longer_and_later_ones_have_not(azure: Simulator, endpoint: str) -> None:
    imds = Imds(endpoint, timeout=0.3, first_timeout=60)
    fault(azure, "delay", delay=0.8)
    assert imds.events().events == ()
    azure.delete("/faults")
    fault(azure, "hang")
    assert seconds(imds.events) < MUCH_LONGER


def test_until_the_first_good_answer_every_attempt_has_longer(azure: Simulator, endpoint: str) -> None:
    imds = Imds(endpoint, timeout=0.3, first_timeout=60)
    fault(azure, "server-error", requests="1")
    with pytest.raises(Exception, match="500"):
        imds.events()
    fault(azure, "delay", delay=0.8)
    assert imds.events().events == ()


def test_after_a_day_of_silence_the_next_answer_has_longer_again(azure: Simulator, endpoint: str) -> None:
    watch = Watch()
    imds = Imds(endpoint, timeout=0.3, first_timeout=60, clock=watch)
    imds.events()
    fault(azure, "hang")
    watch.ahead += 23.9 * 3600
    assert seconds(imds.events) < MUCH_LONGER
    azure.delete("/faults")
    fault(azure, "delay", delay=0.8)
    watch.ahead += 0.2 * 3600
    assert imds.events().events == ()


def test_a_call_can_be_limited_further(azure: Simulator, endpoint: str) -> None:
    fault(azure, "hang")
    imds = Imds(endpoint)
    assert seconds(lambda: imds.events(within=0.4)) < MUCH_LONGER
    assert seconds(lambda: imds.approve("x", within=0.4)) < MUCH_LONGER
    assert seconds(lambda: imds.instance(within=0.4)) < MUCH_LONGER


def test_nobody_there_is_told_at_once_and_as_not_connected() -> None:
    with reserved_port() as port, pytest.raises(ImdsUnreachable, match="no connection") as caught:
        Imds(f"http://127.0.0.1:{port}").events()
    assert not caught.value.connected and caught.value.retryable and caught.value.status is None


def test_a_connection_that_is_never_accepted_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        socket.create_server(("127.0.0.1", 0), backlog=0) as server,
        socket.socket() as first,
        socket.socket() as second,
    ):
        address = server.getsockname()
        # fill the queue of a server that never takes anybody
        for filler in (first, second):
            filler.setblocking(False)
            filler.connect_ex(address)
        time.sleep(0.05)
        # without the limit of this call it would be this one
        monkeypatch.setattr("azure_scheduled_events.imds._CONNECT_TIMEOUT", 60)
        assert seconds(lambda: Imds(f"http://127.0.0.1:{address[1]}").events(within=0.2)) < MUCH_LONGER


def test_a_reset_is_told_as_broken_and_not_repeated(azure: Simulator, endpoint: str) -> None:
    fault(azure, "reset")
    imds = Imds(endpoint)
    with pytest.raises(ImdsUnreachable, match="broke") as caught:
        imds.events()
    assert caught.value.connected and imds.requests_sent == 1


def test_a_kept_connection_that_the_server_closed_costs_one_silent_repeat(azure: Simulator, endpoint: str) -> None:
    imds = Imds(endpoint)
    imds.events()
    fault(azure, "reset", requests="1")
    assert imds.events().events == ()
    assert imds.requests_sent == 3


def test_but_not_two(azure: Simulator, endpoint: str) -> None:
    imds = Imds(endpoint)
    imds.events()
    fault(azure, "reset", requests="1-2")
    with pytest.raises(ImdsUnreachable):
        imds.events()
    assert imds.requests_sent == 3


def test_connections_are_kept(azure: Simulator, endpoint: str) -> None:
    imds = Imds(endpoint)
    before = len(asked(azure))
    for _call in range(5):
        imds.events()
    assert len({request["address"] for request in asked(azure)[before:]}) <= 1
    imds.close()
    assert imds.events().events == ()


def test_what_is_no_http_is_unreachable() -> None:
    with raw_server(b"SSH-2.0-OpenSSH_9.2\r\n") as (endpoint, _heard), pytest.raises(ImdsUnreachable):
        Imds(endpoint).events()


def test_a_body_larger_than_what_the_socket_takes_at_once_is_sent_whole() -> None:
    received = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def late() -> None:
            connection, _address = server.accept()
            with connection:
                time.sleep(0.5)
                with connection.makefile("rb") as request:
                    length = next(
                        int(line.split()[1]) for line in request if line.lower().startswith(b"content-length:")
                    )
                    while request.readline() != b"\r\n":
                        pass
                    # what is left unread when it is closed would take the answer along
                    received.append(len(request.read(length)))
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

        thread = threading.Thread(target=late, daemon=True)
        thread.start()
        Imds(f"http://127.0.0.1:{server.getsockname()[1]}", timeout=60).approve(
            f"{number:0100d}" for number in range(80_000)
        )
        thread.join(60)
    assert received[0] > 9_000_000
