# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A call ends within its time limit, whatever the server does."""

from __future__ import annotations

import time

import pytest

from azure_scheduled_events import Imds, ImdsUnreachable
from support.simulator_process import Simulator, reserved_port
from support.transport.fault_helpers import fault, requests_of, schedule
from support.transport.replies import Answer, Raw, accepting_nothing, serving

# seconds: many times the limits that are tried here, for a busy machine, and far less than the
# answers of these tests would take
MUCH_LONGER = 8


class Watch:
    """The real clock, which a test can advance."""

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
def test_slow_answer_ends_at_the_total_limit(
    azure: Simulator, endpoint: str, kind: str, options: dict[str, object]
) -> None:
    schedule(azure)
    imds = Imds(endpoint, timeout=0.6)
    imds.events()
    fault(azure, kind, **options)
    assert 0.5 <= seconds(imds.events) < MUCH_LONGER


def test_trickling_first_answer_is_limited_from_its_first_byte(azure: Simulator, endpoint: str) -> None:
    fault(azure, "trickle-header", bytes_per_second=4)
    assert 0.5 <= seconds(Imds(endpoint, timeout=0.6, first_timeout=60).events) < MUCH_LONGER


def test_call_after_a_timeout_does_not_get_the_rest_of_the_last_answer(azure: Simulator, endpoint: str) -> None:
    schedule(azure, description="x" * 300)
    imds = Imds(endpoint)
    imds.events()
    fault(azure, "trickle", bytes_per_second=50)
    seconds(lambda: imds.events(within=0.4))
    azure.delete("/faults")
    assert len(imds.events().events) == 1


def test_first_answer_has_a_longer_limit_than_later_ones(azure: Simulator, endpoint: str) -> None:
    imds = Imds(endpoint, timeout=0.3, first_timeout=60)
    fault(azure, "delay", delay=0.8)
    assert imds.events().events == ()
    azure.delete("/faults")
    fault(azure, "hang")
    assert seconds(imds.events) < MUCH_LONGER


def test_every_attempt_before_the_first_good_answer_has_the_longer_limit(azure: Simulator, endpoint: str) -> None:
    imds = Imds(endpoint, timeout=0.3, first_timeout=60)
    fault(azure, "server-error", requests="1")
    with pytest.raises(Exception, match="500"):
        imds.events()
    fault(azure, "delay", delay=0.8)
    assert imds.events().events == ()


def test_answer_after_a_day_of_silence_has_the_longer_limit(azure: Simulator, endpoint: str) -> None:
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


def test_call_can_be_limited_further(azure: Simulator, endpoint: str) -> None:
    fault(azure, "hang")
    imds = Imds(endpoint)
    assert seconds(lambda: imds.events(within=0.4)) < MUCH_LONGER
    assert seconds(lambda: imds.approve("x", within=0.4)) < MUCH_LONGER
    assert seconds(lambda: imds.instance(within=0.4)) < MUCH_LONGER


def test_refused_connection_raises_at_once_as_not_connected() -> None:
    with reserved_port() as port, pytest.raises(ImdsUnreachable, match="no connection") as caught:
        Imds(f"http://127.0.0.1:{port}").events()
    assert not caught.value.connected and caught.value.retryable and caught.value.status is None


def test_connection_is_kept(azure: Simulator, endpoint: str) -> None:
    imds = Imds(endpoint)
    before = len(requests_of(azure))
    for _call in range(5):
        imds.events()
    assert len({request["address"] for request in requests_of(azure)[before:]}) <= 1
    imds.close()
    assert imds.events().events == ()


def test_connection_that_is_never_accepted_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    # the limit without that of this call
    monkeypatch.setattr("azure_scheduled_events.imds._CONNECT_TIMEOUT", 60)
    with accepting_nothing() as url:
        assert seconds(lambda: Imds(url).events(within=0.2)) < MUCH_LONGER


def test_answer_that_is_not_http_is_unreachable() -> None:
    with serving(Raw(b"SSH-2.0-OpenSSH_9.2\r\n")) as server, pytest.raises(ImdsUnreachable):
        Imds(server.url).events()


def test_body_larger_than_the_socket_buffer_is_sent_completely() -> None:
    with serving(Answer()) as server:
        Imds(server.url, timeout=60).approve("x" * 9_000_000)
    assert len(server.received[0].body) > 9_000_000
