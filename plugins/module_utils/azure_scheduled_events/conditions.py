# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""The conditions of a policy's ``when`` (docs/policies.md).

A maker takes a condition's value as written and returns a function of (event, context). It raises
ValueError for a value that it cannot use; the policy adds the value's location.
"""

from __future__ import annotations

import fnmatch
import math
import operator
import re
from datetime import datetime
from typing import Any, Callable, Mapping, NamedTuple, Sequence

from .document import API_VERSION, EVENT_SOURCES, EVENT_STATUSES, ScheduledEvent
from .identity import affects, vm_key
from .options import as_list, parse_boolean, parse_choice, parse_event_type, parse_seconds, parse_texts
from .release import seconds_to_turn

WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
PREPARED = ("none", "running", "ok", "failed")
# of a range
_BOUNDS: Mapping[str, Callable[[float, float], bool]] = {
    "min": operator.ge,
    "max": operator.le,
    "gt": operator.gt,
    "lt": operator.lt,
}


class PolicyContext(NamedTuple):
    """The inputs of a policy apart from the event.

    Attributes:
        now: the current time, aware, preferably by the server's clock.
        own_name: this VM's resource name, or None where unknown.
        api_version: the version with which the event was read.
        first_seen: when the event was first seen, aware, or None for this moment.
        seen_started: whether it was ever seen Started.
        approved_by_us: whether IMDS accepted an approval of this host.
        previous_type: the event type when first seen, if it has changed since; else None.
        prepared: "none", "running", "ok" or "failed".
        gates: the gates' states by name; True is open, and a missing gate is closed.
    """

    now: datetime
    own_name: str | None = None
    api_version: str = API_VERSION
    first_seen: datetime | None = None
    seen_started: bool = False
    approved_by_us: bool = False
    previous_type: str | None = None
    prepared: str = "none"
    gates: Mapping[str, bool] = {}

    def age(self) -> float:
        """Return the seconds since the event was first seen."""
        return 0.0 if self.first_seen is None else max(0.0, (self.now - self.first_seen).total_seconds())


Condition = Callable[[ScheduledEvent, PolicyContext], bool]


def _not_empty(value: Any) -> Any:
    if value in ([], ()):
        raise ValueError("an empty list matches nothing")
    return value


def _one_of(
    parse: Callable[[Any], str], read: Callable[[ScheduledEvent, PolicyContext], str | None]
) -> Callable[[Any], Condition]:
    """One value or a list of values, each of which ``parse`` returns in its usual spelling."""

    def make(value: Any) -> Condition:
        allowed = {parse(item).casefold() for item in as_list(_not_empty(value))}
        return lambda event, context: (read(event, context) or "").casefold() in allowed

    return make


def _choice(known: Sequence[str], kind: str) -> Callable[[Any], str]:
    return lambda item: parse_choice(item, known, kind)


def _boolean_condition(read: Callable[[ScheduledEvent, PolicyContext], bool]) -> Callable[[Any], Condition]:
    def make(value: Any) -> Condition:
        wanted = parse_boolean(value)
        return lambda event, context: read(event, context) is wanted

    return make


def _range(
    read: Callable[[ScheduledEvent, PolicyContext], float | None], may_be_unknown: bool = False
) -> Callable[[Any], Condition]:
    """A number, or bounds ``{min, max, gt, lt}`` with min and max included; ``unknown`` is in no range."""

    def make(value: Any) -> Condition:
        if may_be_unknown and value == "unknown":
            return lambda event, context: read(event, context) is None
        bounds = value if isinstance(value, dict) else {"min": value, "max": value}
        if not bounds:
            raise ValueError("expected at least one of min, max, gt, lt")
        ends = [
            (_BOUNDS[parse_choice(name, tuple(_BOUNDS), "bound")], parse_seconds(end)) for name, end in bounds.items()
        ]

        def test(event: ScheduledEvent, context: PolicyContext) -> bool:
            number = read(event, context)
            return number is not None and all(is_within(number, end) for is_within, end in ends)

        return test

    return make


def _pattern(value: Any) -> Condition:
    if not isinstance(value, str):
        raise ValueError(f"expected a regular expression, not {value!r}")
    try:
        pattern = re.compile(value)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"not a regular expression: {error}") from None
    return lambda event, _context: pattern.search(event.description or "") is not None


def _resources(value: Any) -> Condition:
    """Shell patterns, one of which has to match some resource, or ``{any: [...], all: [...]}``."""
    wanted = value if isinstance(value, dict) else {"any": value}
    if not wanted:
        raise ValueError("expected any or all")
    parts = [(parse_choice(name, ("any", "all"), "key"), _shell_pattern(texts)) for name, texts in wanted.items()]

    def test(event: ScheduledEvent, _context: PolicyContext) -> bool:
        return bool(event.resources) and all(
            (any if name == "any" else all)(pattern.match(resource.casefold()) for resource in event.resources)
            for name, pattern in parts
        )

    return test


def _shell_pattern(value: Any) -> re.Pattern[str]:
    """Return the expression that a folded text matches if it matches one of the shell patterns."""
    try:
        return re.compile("|".join(fnmatch.translate(text.casefold()) for text in parse_texts(_not_empty(value))))
    except re.error as error:
        raise ValueError(f"not a pattern: {error}") from None


def _leader(value: Any) -> Condition:
    """``first``, or ``{strategy: first, takeover_after: TIME}``: after TIME the next VM by name leads, too."""
    options = value if isinstance(value, dict) else {"strategy": value}
    for name in options:
        parse_choice(name, ("strategy", "takeover_after"), "key")
    parse_choice(options.get("strategy", "first"), ("first",), "strategy")
    takeover = parse_seconds(options["takeover_after"]) if "takeover_after" in options else math.inf

    def test(event: ScheduledEvent, context: PolicyContext) -> bool:
        if not affects(event, context.own_name):
            return False
        wait = seconds_to_turn(event.resources, context.own_name or "", takeover, context.age())
        return wait is not None and wait <= 0

    return test


def _utc_hours(value: Any) -> Condition:
    """``22-6``: from 22:00 until before 06:00 UTC, across midnight if the first number is the larger."""
    match = re.fullmatch(r"(\d{1,2})-(\d{1,2})", value) if isinstance(value, str) else None
    if match is None or int(match.group(1)) > 23 or int(match.group(2)) > 24:
        raise ValueError(f"expected hours like 22-6, not {value!r}")
    start, end = int(match.group(1)), int(match.group(2))
    if start < end:
        return lambda _event, context: start <= context.now.hour < end
    return lambda _event, context: context.now.hour >= start or context.now.hour < end


def _gate(value: Any) -> Condition:
    names = parse_texts(_not_empty(value))
    return lambda _event, context: all(context.gates.get(name, False) for name in names)


def _api_version(value: Any) -> Condition:
    text = str(value)
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", text):
        raise ValueError(f"expected an api-version like 2020-07-01, not {value!r}")
    return lambda _event, context: context.api_version >= text


CONDITIONS: dict[str, Callable[[Any], Condition]] = {
    "type": _one_of(parse_event_type, lambda event, _context: event.event_type),
    "status": _one_of(_choice(EVENT_STATUSES, "status"), lambda event, _context: event.status),
    "source": _one_of(_choice(EVENT_SOURCES, "source"), lambda event, _context: event.source),
    "duration": _range(
        lambda event, _context: None if event.duration is None else event.duration.total_seconds(), may_be_unknown=True
    ),
    "time_left": _range(lambda event, context: event.seconds_left(context.now)),
    "description": _pattern,
    "concerns_me": _boolean_condition(lambda event, context: affects(event, context.own_name)),
    "only_me": _boolean_condition(
        lambda event, context: affects(event, context.own_name) and len(set(map(vm_key, event.resources))) == 1
    ),
    "resource_count": _range(lambda event, _context: len(event.resources)),
    "resources": _resources,
    "is_leader": _leader,
    "first_seen_age": _range(lambda _event, context: context.age()),
    "seen_started": _boolean_condition(lambda _event, context: context.seen_started),
    "approved_by_us": _boolean_condition(lambda _event, context: context.approved_by_us),
    "previous_type": _one_of(parse_event_type, lambda _event, context: context.previous_type),
    "prepared": _one_of(_choice(PREPARED, "state of preparation"), lambda _event, context: context.prepared),
    "weekday": _one_of(_choice(WEEKDAYS, "weekday"), lambda _event, context: WEEKDAYS[context.now.weekday()]),
    "utc_hours": _utc_hours,
    "gate": _gate,
    "api_version_min": _api_version,
}
