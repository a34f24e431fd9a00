# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Answers of the scenario for routes that the simulator does not have itself. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from ..http_reply import Reply
from ..scenario.answers import Answer, normalised_path
from ..scenario.groups import Vm
from ..scenario.knobs import Knobs
from .request import Request, Target, reject_duplicates, reject_headers
from .responses import method_not_allowed, not_found


def with_answers(target: Target, answers: Sequence[Answer], method: str, raw_path: str, vm: Vm) -> Target:
    """Return ``target`` with those of ``answers`` that are for its path and ``vm``, and with their route."""
    path = normalised_path(raw_path.partition("?")[0])
    found = tuple(each for each in answers if each.is_for(path, vm.name, vm.group))
    if not found:
        return target
    return target._replace(answers=found, route=(_fitting(method, target, found) or found[0]).route)


def static_reply(request: Request, knobs: Knobs) -> Reply:
    """Return the reply to a request whose path has static answers; the first one that fits is used."""
    target, answers = request.target, request.target.answers
    answer = _fitting(request.method, target, answers)
    if (answer or answers[0]).needs_metadata_header:
        rejection = reject_headers(request, knobs) or reject_duplicates(target)
        if rejection is not None:
            return rejection
    if answer is not None:
        return Reply(answer.status, answer.body, answer.content_type, tuple(answer.headers.items()))
    others = [each.method for each in answers if _has_query(target, each)]
    return method_not_allowed(others) if others else not_found()


def _fitting(method: str, target: Target, answers: Sequence[Answer]) -> Answer | None:
    return next((each for each in answers if each.method in ("any", method) and _has_query(target, each)), None)


def _has_query(target: Target, answer: Answer) -> bool:
    return all(target.query.get(name.lower()) == value for name, value in answer.query.items())
