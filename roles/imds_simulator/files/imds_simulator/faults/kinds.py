# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The table of the kinds of faults, and the reader of one fault of a scenario or of the control API."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..keys import Key, Path, Problems, Type, json_schema, keys_of, read
from ..suggestions import suggestion
from ..value_types import one_of
from . import effects
from .fault import NOTIFY_ROUTE, Fault, Window

_HTML = "<html><head><title>Sign in</title></head><body><h1>Proxy</h1></body></html>"


@dataclass(frozen=True)
class Kind:
    """A kind of fault.

    ``preset`` has values of options, ``window`` defaults of the window. ``only`` are the options that a fault may
    give; None: those that are not preset.
    """

    effect: type[effects.Effect]
    meaning: str
    preset: Mapping[str, Any] = field(default_factory=dict)
    only: tuple[str, ...] | None = None
    window: Mapping[str, Any] = field(default_factory=dict)

    @property
    def keys(self) -> Mapping[str, Key]:
        """The options of the effect."""
        effect: Any = self.effect
        return keys_of(effect)

    @property
    def options(self) -> tuple[str, ...]:
        """The names of the options that a fault may give."""
        return tuple(each for each in self.keys if each not in self.preset) if self.only is None else self.only

    @property
    def window_keys(self) -> tuple[str, ...]:
        """The keys of the window that a fault may give."""
        return tuple(keys_of(Window)) if self.effect.is_per_request else ("vm", "from", "to", "for")


def _status(status: int, meaning: str) -> Kind:
    return Kind(effects.Status, meaning, {"status": status})


def _body(body: str, meaning: str, content_type: str = "", status: int = 200) -> Kind:
    return Kind(effects.Status, meaning, {"status": status, "body": body, "content_type": content_type}, ("headers",))


# what faults damage -> name -> kind
GROUPS: Mapping[str, Mapping[str, Kind]] = {
    "answers": {
        "status": Kind(effects.Status, "any status; body defaults to the general error shape"),
        "bad-request": _status(400, "400"),
        "not-found": _status(404, "404: the endpoint is updating"),
        "gone": _status(410, "410: the host is being updated; at most 70 s according to Azure"),
        "too-many-requests": _status(429, "429 at any rate of requests"),
        "server-error": _status(500, "500"),
        "unavailable": _status(503, "503"),
        "forbidden-html": _body(_HTML, "403 and HTML: a proxy answered, not IMDS", "text/html", 403),
        "redirect": Kind(effects.Redirect, "302 to another address"),
    },
    "bodies": {
        "body": _status(200, "200 and any body"),
        "empty": _body("", "200 and no body"),
        "html": _body(_HTML, "200 and HTML", "text/html"),
        "not-json": _body("Service is starting", "200 and plain text", "text/plain"),
        "null": _body("null", "200 and null"),
        "list": _body("[]", "200 and []"),
        "object": _body("{}", "200 and {}"),
        "events-null": _body('{"DocumentIncarnation":1,"Events":null}', "200 and Events null"),
        "bom": Kind(effects.ByteOrderMark, "the normal body after a UTF-8 byte order mark"),
        "invalid-utf8": Kind(effects.InvalidUtf8, "the normal body with bytes that are not UTF-8"),
        "cut-json": Kind(effects.CutJson, "the first half of the normal body, with the Content-Length of that half"),
        "oversized": Kind(effects.Oversized, "the normal body, padded with spaces to that size in bytes"),
    },
    "connection": {
        "truncated": Kind(effects.Truncated, "the connection closes before Content-Length is reached"),
        "truncated-chunked": Kind(effects.TruncatedChunked, "the connection closes inside a chunked body"),
        "refuse": Kind(effects.Refuse, "connection refused: the listening socket is closed for the window"),
        "reset": Kind(effects.Reset, "the connection is reset (RST) instead of an answer"),
        "lost-request": Kind(effects.LostRequest, "the connection is reset before the service acts"),
        "lost-answer": Kind(effects.LostAnswer, "the service acts, then the connection is reset"),
        "close-idle": Kind(
            effects.CloseIdle, "the normal answer, then the server closes the kept-alive connection without notice"
        ),
    },
    "time": {
        "trickle": Kind(effects.Trickle, "the normal answer, a few bytes per second (real time)"),
        "trickle-header": Kind(effects.Trickle, "as trickle, beginning with the status line", {"part": "header"}),
        "hang": Kind(effects.Hang, "no answer until the fault is over, then the connection is closed"),
        "delay": Kind(effects.Delay, "the normal answer after a delay"),
        "slow-first-answer": Kind(
            effects.Delay, "each VM's first answer after a delay", {"delay": 119}, ("delay",), {"requests": 1}
        ),
        "date-skew": Kind(effects.DateSkew, "the normal answer with a wrong Date header"),
    },
}
KINDS: Mapping[str, Kind] = {name: kind for kinds in GROUPS.values() for name, kind in kinds.items()}
# all options, in the order of the kinds
OPTIONS: Mapping[str, Key] = {name: each for kind in KINDS.values() for name, each in kind.keys.items()}
_KIND = one_of(*KINDS, metavar="KIND")
_KNOWN = ("kind", *keys_of(Window), *OPTIONS)


def _read(data: Any, path: Path, problems: Problems) -> Fault | None:
    if not isinstance(data, Mapping):
        problems.add(path, f"{data!r} is not a mapping")
        return None
    if "kind" not in data:
        problems.add(path, "the key kind is missing", "kind")
    name = _KIND.read(data["kind"], (*path, "kind"), problems) if "kind" in data else None
    kind = KINDS.get(name or "", Kind(effects.Effect, ""))
    for key in data:
        if key not in _KNOWN:
            problems.add((*path, key), f"unknown key{suggestion(key, _KNOWN) or '; known keys: ' + ', '.join(_KNOWN)}")
        elif name is None and key in OPTIONS:
            # which kind is meant is not known, but what each option takes
            OPTIONS[key].type.read(data[key], (*path, key), problems)
        elif name is not None and key not in ("kind", *kind.window_keys, *kind.options):
            takes = ", ".join(kind.options or kind.window_keys)
            problems.add((*path, key), f"fault {name} does not take {key} (it takes {takes})")
    of_window = {key: value for key, value in data.items() if key in kind.window_keys}
    window = read(Window, {**kind.window, **of_window}, path, problems)
    of_effect = {key: value for key, value in data.items() if key in kind.options}
    effect = read(kind.effect, {**kind.preset, **of_effect}, path, problems)
    if name is None or window is None or effect is None:
        return None
    if window.route == NOTIFY_ROUTE and not effect.is_for_notifications:
        taken = ", ".join(each for each, kind in KINDS.items() if kind.effect.is_for_notifications)
        problems.add((*path, "kind"), f"a notification takes only the faults {taken}")
    return Fault(name, window, effect, path)


_PROPERTIES = {
    "kind": _KIND.schema,
    **json_schema(Window)["properties"],
    **{name: {"description": each.meaning, **each.type.schema} for name, each in OPTIONS.items()},
}
_SCHEMA = {"type": "object", "additionalProperties": False, "required": ["kind"], "properties": _PROPERTIES}
# one fault of a scenario or of the control API
FAULT = Type(_read, _SCHEMA, "JSON")
