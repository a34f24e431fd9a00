# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The keys of a fault, whose kind decides which of them it takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..keys import Path, Problems, Type, json_schema, key, read_values, scalar
from ..value_types import (
    DURATION,
    HEADERS,
    NAME,
    NAME_OR_NAMES,
    SIGNED_DURATION,
    TEXT,
    WHEN,
    integer,
    number,
    one_of,
    text,
)
from .fault import Fault
from .fault_kinds import KINDS, FaultError, fault_from

_WINDOW = text("a request number from 1, or text like 3, 3- or 3-5", "[1-9][0-9]{0,17}(-([1-9][0-9]{0,17})?)?")


def _requests(value: Any) -> Any:
    found = Problems()
    if isinstance(value, bool) or _WINDOW.read(str(value), (), found) is None:
        raise ValueError
    return value


@dataclass(frozen=True)
class _FaultKeys:
    kind: Any = key(one_of(*KINDS, metavar="KIND"), "the kind")
    route: Any = key(NAME, "the route", default=None)
    method: Any = key(one_of("any", "GET", "POST", "PUT", "DELETE", "PATCH"), "the method", default=None)
    vm: Any = key(NAME_OR_NAMES, "the VMs", default=None)
    requests: Any = key(
        scalar("a request number from 1, or text like 3, 3- or 3-5", _requests, {"type": ["integer", "string"]}),
        "the matching requests",
        default=None,
    )
    begins: Any = key(WHEN, "when it begins", default=None, name="from")
    to: Any = key(WHEN, "when it ends", default=None)
    lasts: Any = key(DURATION, "how long it lasts", default=None, name="for")
    status: Any = key(integer(200, 599), "the status", default=None)
    headers: Any = key(HEADERS, "further headers", default=None)
    body: Any = key(TEXT, "the body", default=None)
    body_base64: Any = key(TEXT, "the body in base64", default=None)
    content_type: Any = key(TEXT, "Content-Type", default=None)
    retry_after: Any = key(DURATION, "Retry-After", default=None)
    retry_after_format: Any = key(one_of("seconds", "date"), "the form of Retry-After", default=None)
    size: Any = key(integer(1, 268435456), "bytes", default=None)
    keep: Any = key(integer(0), "bytes that are sent", default=None)
    bytes_per_second: Any = key(
        number("a finite number above 0", lambda value: value > 0, {"exclusiveMinimum": 0}), "speed", default=None
    )
    part: Any = key(one_of("header", "body"), "what is slow", default=None)
    delay: Any = key(DURATION, "the delay", default=None)
    location: Any = key(TEXT, "Location", default=None)
    skew: Any = key(SIGNED_DURATION, "how wrong Date is", default=None)
    idle: Any = key(DURATION, "time until the connection closes", default=None)


def _read_fault(value: Any, path: Path, problems: Problems) -> Fault | None:
    if read_values(_FaultKeys, value, path, problems) is None or problems.concern(path):
        return None
    try:
        return fault_from({"place": path, **value})
    except FaultError as error:
        problems.add((*path, error.key), str(error))
        return None


FAULT = Type(_read_fault, lambda: json_schema(_FaultKeys))
