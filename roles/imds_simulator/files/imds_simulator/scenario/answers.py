# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Static answers of routes that the simulator does not have itself: the key ``answers`` of a scenario."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..header_text import is_header_name, is_header_value
from ..suggestions import suggestion
from .fault import ROUTES
from .json_data import is_json_data

# the paths of the simulator itself; an answer cannot replace them
_BUILT_IN = re.compile(r"/metadata(/(scheduledevents|versions|instance(/.*)?))?/?", re.IGNORECASE)
_METADATA = re.compile(r"/metadata(/.*)?", re.IGNORECASE)
_BODY_KEYS = ("body", "json", "body_base64")
_JSON_TYPE = "application/json; charset=utf-8"
_CONTENT_TYPES = {"body": "text/plain; charset=utf-8", "json": _JSON_TYPE, "body_base64": "application/octet-stream"}
# names that the log or a fault has for something else
_RESERVED = (*ROUTES, "unknown")
# the server sends these itself; others would make the answer unreadable
_FRAMING = frozenset(("content-length", "transfer-encoding", "connection"))


@dataclass(frozen=True)
class Answer:
    """One static answer.

    ``path`` is in lower case, without a slash at its end; it is the beginning of the path if
    ``is_prefix``. ``route`` is the name in the log and in faults. ``vms`` and ``groups`` are names;
    if both are empty, the answer is that of all VMs.
    """

    path: str
    is_prefix: bool
    route: str
    method: str
    query: Mapping[str, str]
    vms: tuple[str, ...]
    groups: tuple[str, ...]
    needs_metadata_header: bool
    status: int
    body: bytes = b""
    content_type: str = ""
    headers: tuple[tuple[str, str], ...] = field(default=())

    def is_for(self, path: str, vm: str, group: str) -> bool:
        """Return True if the answer is that of ``path`` (normalised) for a VM."""
        at_path = path.startswith(self.path) if self.is_prefix else path == self.path
        return at_path and (vm in self.vms or group in self.groups or not (self.vms or self.groups))


def normalised_path(path: str) -> str:
    """Return ``path`` in lower case, without a slash at its end."""
    return (path[:-1] if path.endswith("/") and path != "/" else path).lower()


def route_name(data: Mapping[str, Any]) -> str:
    """Return the name of the route of an answer: its ``name``, else its path."""
    return str(data.get("name", data["path"]))


def answer_problems(
    data: Mapping[str, Any], groups: Mapping[str, Any], group_of: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """Yield the problems that the schema does not find, as (key, message).

    ``groups``: name -> group data, ``group_of``: VM name -> group name.
    """
    path = data["path"]
    if _BUILT_IN.fullmatch(path):
        yield "path", f"the simulator answers {path} itself; use a fault, or instance of a group or VM"
    elif "*" in re.sub(r"/\*$", "", path):
        yield "path", f"{path!r} has a * that is not its last part, as in /machine/*"
    if data.get("name") in _RESERVED:
        yield "name", f"{data['name']!r} is a route of the simulator itself; give another name"
    yield from _body_problems(data)
    yield from _header_problems(data.get("headers", {}))
    if "vm" in data and "group" in data:
        yield "group", "give either vm or group, not both"
    for key, what, known in (("vm", "VM", group_of), ("group", "group", groups)):
        for name in _names(data.get(key)):
            if name not in known:
                hint = suggestion(name, known) or f"; there are {', '.join(sorted(known))}"
                yield key, f"there is no {what} {name}{hint}"


def answer_from(data: Mapping[str, Any]) -> Answer:
    """Return the answer that checked ``data`` describes."""
    path = data["path"]
    is_prefix = path.endswith("/*")
    given = next((key for key in _BODY_KEYS if key in data), None)
    return Answer(
        path=path[:-1].lower() if is_prefix else normalised_path(path),
        is_prefix=is_prefix,
        route=route_name(data),
        method=data.get("method", "GET"),
        query={name.lower(): str(value) for name, value in data.get("query", {}).items()},
        vms=_names(data.get("vm")),
        groups=_names(data.get("group")),
        needs_metadata_header=data.get("require_metadata_header", _METADATA.fullmatch(path) is not None),
        status=data.get("status", 200),
        body=_body(data, given),
        content_type=data.get("content_type", _CONTENT_TYPES.get(given or "", "")),
        headers=tuple((name, str(value)) for name, value in data.get("headers", {}).items()),
    )


def _body_problems(data: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    given = [key for key in _BODY_KEYS if key in data]
    if len(given) > 1:
        yield given[1], f"give only one of {', '.join(_BODY_KEYS)}"
    elif given and data.get("status", 200) in (204, 304):
        yield given[0], f"an answer with status {data['status']} has no body"
    if "body_base64" in data and _decoded(data["body_base64"]) is None:
        yield "body_base64", "not base64"
    if not is_json_data(data.get("json")):
        yield "json", "JSON has no binary data, NaN or infinity; write body_base64, or text"
    if not is_header_value(data.get("content_type", "")):
        yield "content_type", "content_type has more than one line, or a control character"


def _header_problems(headers: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in headers.items():
        if not is_header_name(name):
            yield "headers", f"{name!r} is not the name of a header"
        elif name.lower() in _FRAMING:
            yield "headers", f"{name}: the simulator sends this header itself"
        elif not is_header_value(str(value)):
            yield "headers", f"the value of {name} has more than one line, or a control character"


def _body(data: Mapping[str, Any], key: str | None) -> bytes:
    if key == "json":
        return json.dumps(data["json"], separators=(",", ":"), ensure_ascii=False).encode(errors="backslashreplace")
    if key == "body_base64":
        return _decoded(data["body_base64"]) or b""
    return str(data.get("body", "")).encode(errors="backslashreplace")


def _decoded(text: str) -> bytes | None:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        return None


def _names(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    return (value,) if isinstance(value, str) else tuple(value)
