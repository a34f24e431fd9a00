# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Where and how notifications of Event Grid are published: the key ``notify`` of a scenario."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from urllib.parse import urlsplit

from ..keys import key
from ..value_types import BOOLEAN, DURATION, HEADERS, TOKEN, integer, number, one_of, text

EVENT_GRID = "eventgrid"
CLOUD_EVENTS = "cloudevents"


def _web_address(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0 or not url.isprintable():
        raise ValueError(f"{url!r} is not an http or https address")
    return url


_URL = text(parse=_web_address, metavar="URL")
_SHARE = number("a share from 0 to 1", lambda value: 0 <= value <= 1, {"minimum": 0, "maximum": 1})


@dataclass(frozen=True)
class Notify:
    """The settings of publishing. ``disorder`` is in simulated seconds."""

    url: str = key(_URL, "the address of the web hook", default="", required=True)
    schema: str = key(one_of(EVENT_GRID, CLOUD_EVENTS), "the schema of the notifications", default=EVENT_GRID)
    token: str = key(TOKEN, "the bearer token that each request has", default="")
    given_headers: Mapping[str, str] = key(
        HEADERS, "further headers of each request", default=MappingProxyType({}), name="headers"
    )
    duplicates: float = key(_SHARE, "the share of notifications that are sent twice", default=0.0)
    disorder: float = key(DURATION, "the longest random delay of a notification", default=0.0)
    seed: int | None = key(
        integer(0), "a number that makes ids, duplicates and delays the same in each run", default=None
    )
    attempts: int = key(integer(1, 30), "the largest number of requests for one notification", default=5)
    validate: bool = key(
        BOOLEAN, "send the handshake first; without a valid answer no notification follows", default=False
    )

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers of each request."""
        return {**self.given_headers, **({"Authorization": f"Bearer {self.token}"} if self.token else {})}
