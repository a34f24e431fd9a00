# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A request on a kept connection that the server has closed is repeated once; after other errors it is not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from azure_scheduled_events import Imds, ImdsError, ImdsUnreachable
from support.transport.replies import FIN, RST, Answer, Raw, serving

GOOD = Answer(body=b'{"DocumentIncarnation": 1, "Events": []}')

CALLS: dict[str, Callable[[Imds], object]] = {"GET": lambda imds: imds.events(), "POST": lambda imds: imds.approve("A")}


@pytest.fixture(params=sorted(CALLS))
def call(request: pytest.FixtureRequest) -> Callable[[Imds], object]:
    return CALLS[request.param]


@pytest.mark.parametrize("end", [FIN, RST])
def test_closed_connection_instead_of_an_answer_is_repeated_once(call: Callable[[Imds], object], end: str) -> None:
    with serving(GOOD, Raw(end=end), GOOD) as server:
        imds = Imds(server.url)
        imds.events()
        call(imds)
        assert (imds.requests_sent, len(server.received), server.connections) == (3, 3, 2)


@pytest.mark.parametrize("end", [FIN, RST])
def test_closed_connection_between_two_requests_raises_no_error(call: Callable[[Imds], object], end: str) -> None:
    with serving(GOOD._replace(end=end), GOOD) as server:
        imds = Imds(server.url)
        imds.events()
        assert server.ended.acquire(timeout=60)
        call(imds)
        assert len(server.received) == server.connections == 2


@pytest.mark.parametrize("end", [FIN, RST])
def test_second_closed_connection_is_an_error(call: Callable[[Imds], object], end: str) -> None:
    with serving(GOOD, Raw(end=end)) as server:
        imds = Imds(server.url)
        imds.events()
        with pytest.raises(ImdsUnreachable, match="the connection broke") as caught:
            call(imds)
        assert caught.value.connected and imds.requests_sent == 3


@pytest.mark.parametrize("end", [FIN, RST])
def test_new_connection_that_closes_is_not_repeated(call: Callable[[Imds], object], end: str) -> None:
    with serving(Raw(end=end)) as server:
        imds = Imds(server.url)
        with pytest.raises(ImdsUnreachable, match="the connection broke"):
            call(imds)
        assert imds.requests_sent == 1


@pytest.mark.parametrize("part", [b"H", b'HTTP/1.1 200 X\r\nContent-Length: 99\r\n\r\n{"'], ids=["head", "body"])
@pytest.mark.parametrize("end", [FIN, RST])
def test_closed_connection_within_an_answer_is_not_repeated(
    call: Callable[[Imds], object], end: str, part: bytes
) -> None:
    """The server processed the request; the rest of the answer is unknown."""
    with serving(GOOD, Raw(part, end), GOOD) as server:
        imds = Imds(server.url)
        imds.events()
        with pytest.raises(ImdsError):
            call(imds)
        assert imds.requests_sent == 2
