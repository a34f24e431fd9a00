# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Requests that show how IMDS treats unusual requests. None of them changes anything.

The names are part of the format of recordings.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from .lines import NEWEST

EVENTS_PATH = "/metadata/scheduledevents"
INSTANCE_PATH = "/metadata/instance"
EVENTS_VERSION = "2020-07-01"
INSTANCE_VERSION = "2021-02-01"
METADATA: Mapping[str, str] = {"Metadata": "true"}
# requests of the rate probe for events, and for instance metadata after them
BURST = (10, 3)
RATE_EVENTS = "rate-events"
RATE_INSTANCE = "rate-instance"

_EVENTS = f"{EVENTS_PATH}?api-version={EVENTS_VERSION}"
_INSTANCE = f"{INSTANCE_PATH}?api-version={INSTANCE_VERSION}"


class Probe(NamedTuple):
    """A request with its name."""

    name: str
    path: str
    headers: Mapping[str, str] = METADATA
    method: str = "GET"


PROBES = (
    Probe("no-header", _EVENTS, {}),
    Probe("header-false", _EVENTS, {"Metadata": "false"}),
    Probe("header-case", _EVENTS, {"METADATA": "True"}),
    Probe("forwarded", _EVENTS, {**METADATA, "X-Forwarded-For": "127.0.0.1"}),
    Probe("no-version", EVENTS_PATH),
    Probe("unknown-version", f"{EVENTS_PATH}?api-version=1999-01-01"),
    Probe("latest-version", f"{EVENTS_PATH}?api-version=%7Blatest%7D"),
    Probe("version-2021-12-13", f"{EVENTS_PATH}?api-version=2021-12-13"),
    Probe("preview-no-header", f"{EVENTS_PATH}?api-version=2017-03-01", {}),
    Probe("duplicate-parameter", f"{_EVENTS}&api-version={EVENTS_VERSION}"),
    Probe("format-json", f"{_EVENTS}&format=json"),
    Probe("path-case", f"/metadata/scheduledEvents?api-version={EVENTS_VERSION}"),
    Probe("trailing-slash", f"{EVENTS_PATH}/?api-version={EVENTS_VERSION}"),
    Probe("double-slash", f"/metadata//scheduledevents?api-version={EVENTS_VERSION}"),
    Probe("unknown-path", f"/metadata/no-such-path?api-version={EVENTS_VERSION}"),
    Probe("unknown-path-no-header", f"/metadata/no-such-path?api-version={EVENTS_VERSION}", {}),
    Probe("root", "/metadata"),
    Probe("root-version", f"/metadata?api-version={INSTANCE_VERSION}"),
    Probe("head", _EVENTS, METADATA, "HEAD"),
    Probe("versions", "/metadata/versions"),
    Probe(NEWEST, f"{INSTANCE_PATH}?api-version=2025-04-07"),
    Probe("instance-no-version", INSTANCE_PATH),
    Probe("instance-events-version", f"{INSTANCE_PATH}?api-version={EVENTS_VERSION}"),
    Probe("leaf-as-json", f"{INSTANCE_PATH}/compute/name?api-version={INSTANCE_VERSION}"),
    Probe("leaf-as-text", f"{INSTANCE_PATH}/compute/osType?api-version={INSTANCE_VERSION}&format=text"),
    Probe("unknown-element", f"{INSTANCE_PATH}/compute/noSuchElement?api-version={INSTANCE_VERSION}&format=text"),
)
IF_NONE_MATCH = "if-none-match"


def conditional(etag: str) -> Probe:
    """Return the request that asks for the document only if its entity tag is not ``etag``."""
    return Probe(IF_NONE_MATCH, _EVENTS, {**METADATA, "If-None-Match": etag})


def burst() -> tuple[Probe, ...]:
    """Return the requests that exceed the rate limit (docs/reference/scheduled-events.md 1.7)."""
    events = Probe(RATE_EVENTS, _EVENTS)
    instance = Probe(RATE_INSTANCE, _INSTANCE)
    return (events,) * BURST[0] + (instance,) * BURST[1]
