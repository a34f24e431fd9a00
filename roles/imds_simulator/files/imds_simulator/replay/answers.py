# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The answer of a replay to a request. Pure except for the present position."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from ..api_versions import INSTANCE_VERSIONS
from ..protocol.approval_request import MalformedApproval, event_ids
from ..protocol.instance_lookup import element
from ..protocol.request_target import EVENTS, VERSIONS, parse_target
from ..protocol.request_validation import Request, reject
from ..protocol.responses import JSON_TYPE, Reply, error, json_reply
from ..recording.lines import Answer
from ..scenario.header_text import is_header_name, is_header_value
from ..scenario.knobs import Knobs
from .progress import Progress
from .timeline import Timeline

# seconds: quicker answers are sent at once
_SLOW = 1.0
# headers that the listener makes itself
_MADE = frozenset(("content-length", "transfer-encoding", "connection", "keep-alive", "date", "content-type"))


class Replayed(NamedTuple):
    """An answer of the replay.

    ``line`` is the line of the recording that it comes from, 0 for an answer by default. ``until`` is the time of the
    clock before which it is not sent, ``is_lost`` is True if the connection is closed instead.
    """

    reply: Reply
    line: int = 0
    until: float = 0.0
    is_lost: bool = False


class Answers:
    """Answers requests from a recording."""

    def __init__(self, timeline: Timeline, progress: Progress) -> None:
        self._timeline = timeline
        self._progress = progress
        self._knobs = Knobs()

    def answer(self, method: str, path: str, headers: Mapping[str, str], now: float) -> Replayed:
        """Return the answer to a request without body at ``now``, a time of the clock."""
        position = self._progress.position(now)
        probed = self._timeline.probed(method, path, headers, position.seconds)
        if probed is not None:
            return Replayed(_reply(probed, probed.body), probed.line)
        target = parse_target(path)
        rejection = reject(Request(method, target, headers), self._knobs)
        if rejection is not None:
            return Replayed(rejection)
        if target.route == EVENTS:
            return self._document(target.version or "", headers, now)
        if target.route == VERSIONS:
            return Replayed(json_reply({"apiVersions": list(INSTANCE_VERSIONS)}))
        return self._instance(target.below, target.query.get("format", "json").lower(), position.seconds)

    def approve(self, path: str, headers: Mapping[str, str], body: bytes, now: float) -> Replayed:
        """Return the answer to an approval: 200 for events of the present document, else 400.

        Nothing starts: the recording goes on as it is.
        """
        target = parse_target(path)
        rejection = reject(Request("POST", target, headers), self._knobs)
        if rejection is not None:
            return Replayed(rejection)
        try:
            ids = event_ids(body)
        except MalformedApproval as problem:
            return Replayed(error(400, f"Bad request. {problem}"))
        document = self._document(target.version or "", {}, now)
        data = _decoded(document.reply.body)
        events = data.get("Events") if isinstance(data, dict) else None
        listed = events if isinstance(events, list) else []
        present = {str(each.get("EventId", "")).upper() for each in listed if isinstance(each, dict)}
        unknown = [each for each in ids if each.upper() not in present]
        if unknown:
            return Replayed(error(400, f"Bad request. Unknown event id {unknown[0]}"), document.line)
        return Replayed(Reply(200, b"", JSON_TYPE), document.line)

    def _document(self, version: str, headers: Mapping[str, str], now: float) -> Replayed:
        position = self._progress.position(now)
        found = self._timeline.document(version, position.seconds)
        if found is None:
            return Replayed(error(404, "Not found. The recording has no polls"))
        answer, until = found.answer, 0.0
        if answer.seconds >= _SLOW:
            until = self._progress.clock_time(found.position + answer.seconds, position.round)
        if answer.error:
            return Replayed(Reply(0), answer.line, until, is_lost=True)
        reply = _reply(answer, self._progress.body(answer.body, position.round))
        if position.round:
            reply = _with_round(reply, position.round)
        tag = dict(reply.headers).get("etag")
        known = {name.lower(): value for name, value in headers.items()}.get("if-none-match")
        if tag and known is not None and tag in known and self._timeline.conditional and reply.status == 200:
            reply = Reply(304, b"", "", reply.headers)
        return Replayed(reply, answer.line, until)

    def _instance(self, below: tuple[str, ...], output_format: str, seconds: float) -> Replayed:
        answer = self._timeline.instance(seconds)
        if answer is None:
            return Replayed(error(404, "Not found. The recording has no instance metadata"))
        if not below and output_format == "json":
            return Replayed(_reply(answer, answer.body), answer.line)
        document = _decoded(answer.body)
        return Replayed(element({} if document is None else document, below, output_format), answer.line)


def _reply(answer: Answer, body: bytes) -> Reply:
    sendable = {
        name: value for name, value in answer.headers.items() if is_header_name(name) and is_header_value(value)
    }
    kept = tuple((name, value) for name, value in sendable.items() if name.lower() not in _MADE)
    return Reply(answer.status, body, sendable.get("content-type", ""), kept)


def _decoded(body: bytes) -> Any:
    """Return ``body`` as JSON data, or None."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _with_round(reply: Reply, turn: int) -> Reply:
    """Return ``reply`` with another ETag: in a later round the dates differ."""
    headers = tuple(
        (name, f'{value.rstrip(chr(34))}-{turn}"' if name == "etag" and value.endswith('"') else value)
        for name, value in reply.headers
    )
    return Reply(reply.status, reply.body, reply.content_type, headers)
