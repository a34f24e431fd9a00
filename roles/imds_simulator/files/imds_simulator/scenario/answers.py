# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Static answers of routes that the simulator does not have itself: the key ``answers`` of a scenario."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any

from ..faults.fault import ROUTES
from ..keys import Found, Path, from_path, key, scalar
from ..value_types import BASE64, BODY, BOOLEAN, HEADER_VALUE, HEADERS, NAME_OR_NAMES, TEXTS, integer, one_of, text

# the paths of the simulator itself; an answer cannot replace them
_BUILT_IN = re.compile(r"/metadata(/(scheduledevents|versions|instance(/.*)?))?/?", re.IGNORECASE)
_METADATA = re.compile(r"/metadata(/.*)?", re.IGNORECASE)
_USUAL_TYPES = ("text/plain; charset=utf-8", "application/json; charset=utf-8", "application/octet-stream")
# names that the log or a fault has for something else
_RESERVED = (*ROUTES, "unknown")
# the server sends these itself; others would make the answer unreadable
_FRAMING = frozenset(("content-length", "transfer-encoding", "connection"))


def _path(path: str) -> str:
    if _BUILT_IN.fullmatch(path):
        raise ValueError(f"the simulator answers {path} itself; use a fault, or instance of a group or VM")
    if "*" in re.sub(r"/\*$", "", path):
        raise ValueError(f"{path!r} has a * that is not its last part, as in /machine/*")
    return path


def _name(name: str) -> str:
    if name in _RESERVED:
        raise ValueError(f"{name!r} is a route of the simulator itself; give another name")
    return name


def _json_body(value: Any) -> bytes:
    try:
        body = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError):
        raise ValueError("JSON has no binary data, NaN or infinity; write body_base64, or text") from None
    return body.encode(errors="backslashreplace")


_PATH = text("a path such as /metadata/identity/oauth2/token, without query", r"/[!-\"$->@-~]*", _path, "PATH")
_NAME = text("letters, digits, _ and -", "[A-Za-z0-9_-]+", _name, "NAME")
_NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True)
class Answer:
    """One static answer; without VMs and groups it is that of all VMs."""

    given_path: str = key(
        _PATH, "the path; with /* at its end, all paths below it", default="/", required=True, name="path"
    )
    name: str = key(_NAME, "the name of the route in the log and in faults; without it, the path", default="")
    method: str = key(one_of("GET", "POST", "PUT", "DELETE", "PATCH", "any"), "the method", default="GET")
    query: Mapping[str, str] = key(TEXTS, "what the query of a request must have", default=_NOTHING)
    vms: tuple[str, ...] = key(NAME_OR_NAMES, "the VMs that get the answer", default=(), name="vm")
    groups: tuple[str, ...] = key(NAME_OR_NAMES, "the groups whose VMs get the answer", default=(), name="group")
    require_metadata_header: bool | None = key(
        BOOLEAN, "requests need Metadata: true; without it, those below /metadata", default=None
    )
    status: int = key(integer(200, 599), "the status", default=200)
    headers: Mapping[str, str] = key(HEADERS, "further headers", default=_NOTHING)
    as_text: bytes | None = key(BODY, "the body as text", default=None, name="body")
    as_json: bytes | None = key(scalar("", _json_body, {}, "JSON"), "the body as JSON", default=None, name="json")
    as_base64: bytes | None = key(BASE64, "the body in base64", default=None, name="body_base64")
    given_content_type: str | None = key(
        HEADER_VALUE, "Content-Type; without it, that of the form of the body", default=None, name="content_type"
    )
    place: Path = from_path(lambda path: path, (), compare=False)

    @property
    def is_prefix(self) -> bool:
        """True if ``path`` is the beginning of the paths."""
        return self.given_path.endswith("/*")

    @cached_property
    def path(self) -> str:
        """The path in lower case, without a slash at its end."""
        return self.given_path[:-1].lower() if self.is_prefix else normalised_path(self.given_path)

    @property
    def route(self) -> str:
        """The name in the log and in faults."""
        return self.name or self.given_path

    @property
    def needs_metadata_header(self) -> bool:
        """True if requests need ``Metadata: true``."""
        below_metadata = _METADATA.fullmatch(self.given_path) is not None
        return below_metadata if self.require_metadata_header is None else self.require_metadata_header

    @property
    def body(self) -> bytes:
        """The body."""
        return self.as_text or self.as_json or self.as_base64 or b""

    @property
    def content_type(self) -> str:
        """The value of Content-Type; empty for none."""
        if self.given_content_type is not None:
            return self.given_content_type
        return next((usual for body, usual in zip(self._bodies, _USUAL_TYPES) if body is not None), "")

    @property
    def _bodies(self) -> tuple[bytes | None, ...]:
        return self.as_text, self.as_json, self.as_base64

    def is_for(self, path: str, vm: str, group: str) -> bool:
        """Return True if the answer is that of ``path`` (normalised) for a VM."""
        at_path = path.startswith(self.path) if self.is_prefix else path == self.path
        return at_path and (vm in self.vms or group in self.groups or not (self.vms or self.groups))

    def check(self) -> Found:
        """Yield the problems of keys that exclude each other."""
        given = [name for name, body in zip(("body", "json", "body_base64"), self._bodies) if body is not None]
        if len(given) > 1:
            yield (given[1],), "give only one of body, json, body_base64"
        elif given and self.status in (204, 304):
            yield (given[0],), f"an answer with status {self.status} has no body"
        if self.vms and self.groups:
            yield ("group",), "give either vm or group, not both"
        for name in self.headers:
            if name.lower() in _FRAMING:
                yield ("headers",), f"{name}: the simulator sends this header itself"


def normalised_path(path: str) -> str:
    """Return ``path`` in lower case, without a slash at its end."""
    return (path[:-1] if path.endswith("/") and path != "/" else path).lower()
