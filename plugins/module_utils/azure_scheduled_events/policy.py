# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Policies: rules that decide about an event (docs/reference/scheduled-events.md 7.2).

The first rule that matches decides; if none matches, nothing is approved. An event with an unknown
type, status, source or resource type never matches a rule that approves. An event that only advises
matches a rule with an approval only if that rule names its type. This file is pure: it sends no
request and keeps no state.
"""

from __future__ import annotations

from typing import Any, Callable, NamedTuple, Sequence, TypeVar

from . import release
from .conditions import CONDITIONS, Condition, PolicyContext
from .document import ScheduledEvent
from .event_types import advises
from .options import as_list, check_key, did_you_mean, parse_boolean, parse_choice, parse_seconds, type_warnings
from .release import Obstacle
from .yaml_lines import SourceLocation, load_with_lines

T = TypeVar("T")

NOW = "now"
AFTER_PREPARE = "after_prepare"
MANUAL = "manual"
NEVER = "never"
# the values of `approve`; a rule without it has NEVER
APPROVALS = (NOW, AFTER_PREPARE, MANUAL)
RULE_KEYS = ("name", "when", "approve", "hold")

PRESETS: dict[str, list[dict[str, Any]]] = {
    "observe": [{"name": "only watch", "when": {}}],
    # the Python sample of Microsoft's documentation, limited to events that affect this VM (reference 7.2)
    "documented": [
        {"name": "running already", "when": {"status": "Started"}},
        {"name": "asked for by a user", "when": {"concerns_me": True, "source": "User"}, "approve": "now"},
        {
            "name": "short freeze",
            "when": {"concerns_me": True, "type": "Freeze", "duration": {"min": 0, "lt": 9}},
            "approve": "now",
        },
        {"name": "everything else", "when": {}},
    ],
}


class PolicyError(ValueError):
    """A policy that cannot be used; the text names the location, the key and the nearest valid value."""


class Decision(NamedTuple):
    """The decision of a policy about one event at one moment.

    Attributes:
        approval: one of APPROVALS, as the rule has it, or "never" without a rule that approves.
        reason: one sentence for the operator.
        code: why no approval is to be sent now; None if one is.
        hold: whether no preparation may begin.
    """

    approval: str
    reason: str
    code: str | None = None
    hold: bool = False


class _ApprovalRule(NamedTuple):
    """When a rule allows an approval: all of its limits have to be met."""

    when: str = NEVER
    delay: float = 0.0
    time_left: float | None = None
    on_failure: str = "hold"

    def blocked_by(self, event: ScheduledEvent, context: PolicyContext) -> Obstacle | None:
        """Return why the rule does not allow the approval now, or None."""
        if self.when == MANUAL:
            return release.MANUAL
        if context.prepared == "failed" and self.on_failure == "hold":
            return release.PREPARATION_FAILED
        if self.when == AFTER_PREPARE and context.prepared not in ("ok", "failed"):
            return release.NOT_PREPARED
        if context.age() < self.delay:
            return Obstacle("delay", f"it was first seen less than {self.delay:g} s ago")
        left, limit = event.seconds_left(context.now), self.time_left
        if limit is not None and left > limit:
            return Obstacle("time_left", f"{left:.0f} s are left, more than the limit of {limit:g} s")
        return None


class _Rule(NamedTuple):
    name: str
    location: str
    conditions: tuple[tuple[str, Condition], ...]
    approval: _ApprovalRule
    hold: bool
    warnings: tuple[str, ...]

    def approves(self) -> bool:
        return self.approval.when in (NOW, AFTER_PREPARE)

    def follows_advice(self) -> bool:
        """Return True if the rule may match an event that only advises."""
        return self.approval.when == NEVER or any(name == "type" for name, _holds in self.conditions)


# of a policy without a file
_UNNAMED = SourceLocation("policy")
# bytes
_LONGEST_YAML = 64 * 1024


class Policy:
    """A checked list of rules; made by :meth:`parse`, :meth:`preset`, :meth:`from_mapping` and :meth:`from_yaml`."""

    def __init__(self, name: str, rules: Sequence[_Rule], is_preset: bool = False) -> None:
        self.name = name
        self.is_preset = is_preset
        self._rules = tuple(rules)

    @property
    def warnings(self) -> tuple[str, ...]:
        """One sentence, with the location, for each event type that is unknown."""
        return tuple(text for rule in self._rules for text in rule.warnings)

    @classmethod
    def preset(cls, name: str) -> Policy:
        """Return a policy by name.

        "observe" approves nothing; "documented" approves User events and freezes under 9 s that affect this VM.

        Raises:
            PolicyError: there is no preset of that name.
        """
        if name not in tuple(PRESETS):
            raise PolicyError(f"unknown policy {name!r}{did_you_mean(name, tuple(PRESETS))}")
        found = cls.from_mapping({"name": name, "rules": PRESETS[name]}, SourceLocation("preset " + name))
        return cls(found.name, found._rules, is_preset=True)

    @classmethod
    def from_mapping(cls, data: Any, location: SourceLocation = _UNNAMED) -> Policy:
        """Return a policy as plain data: ``{name, preset}`` or ``{name, rules}``.

        ``rules`` is a list of ``{name, when, approve}`` or ``{name, when, hold}``; ``location`` is that of the policy.

        Raises:
            PolicyError: the data cannot be used.
        """
        _check_keys(data, ("name", "preset", "rules"), location)
        if ("preset" in data) == ("rules" in data):
            raise PolicyError(f"{location}: expected either preset or rules")
        if "preset" in data:
            return _parsed(cls.preset, data["preset"], location.at("preset"))
        rules, place = data["rules"], location.at("rules")
        if not isinstance(rules, list) or not rules:
            raise PolicyError(f"{place}: expected a list of at least one rule")
        return cls(str(data.get("name", "rules")), [_rule(rule, place.at(index)) for index, rule in enumerate(rules)])

    @classmethod
    def parse(cls, value: Any, location: SourceLocation = _UNNAMED) -> Policy:
        """Return the policy of an option: the name of a preset, or a mapping as :meth:`from_mapping` takes it.

        Raises:
            PolicyError: the value cannot be used.
        """
        return _parsed(cls.preset, value, location) if isinstance(value, str) else cls.from_mapping(value, location)

    @classmethod
    def from_yaml(cls, text: str, name: str) -> Policy:
        """Return the policy in YAML text; ``name`` is that of its file, for error texts.

        Raises:
            ValueError: the text is longer than 64 KiB, is not YAML, or is not a policy.
        """
        if len(text.encode("utf-8", "replace")) > _LONGEST_YAML:
            raise ValueError(f"{name}: a policy of more than 64 KiB; divide it, or remove rules")
        return cls.from_mapping(*load_with_lines(text, name, "policy file"))

    def approving_after_preparation(self) -> Policy:
        """Return the policy with rules that approve only after this VM has prepared without a failure."""
        rules = [
            rule._replace(approval=rule.approval._replace(when=AFTER_PREPARE)) if rule.approval.when == NOW else rule
            for rule in self._rules
        ]
        return Policy(self.name, rules, self.is_preset)

    def may_approve(self) -> bool:
        """Return True if any rule approves events without an operator."""
        return any(rule.approves() for rule in self._rules)

    def approval_times(self) -> frozenset[str]:
        """Return which of APPROVALS and NEVER the rules have."""
        return frozenset(rule.approval.when for rule in self._rules)

    def decide(self, event: ScheduledEvent, context: PolicyContext) -> Decision:
        """Return the decision about the event now; raise OwnNameUnknown if a rule depends on an unknown name."""
        unknown = release.unknown_value(event)
        is_advice = advises(event.event_type)
        for rule in self._rules:
            if (unknown and rule.approves()) or (is_advice and not rule.follows_advice()):
                continue
            if all(holds(event, context) for _name, holds in rule.conditions):
                return self._decision(rule, event, context)
        if unknown:
            reason = f"no rule matched ({unknown.text}, so no rule that approves may match)"
            return Decision(NEVER, f"{reason}; nothing is approved", unknown.code)
        reason = f"no rule names {event.event_type}, which only advises" if is_advice else "no rule matched"
        return Decision(NEVER, f"{reason}; nothing is approved", "no_rule")

    def _decision(self, rule: _Rule, event: ScheduledEvent, context: PolicyContext) -> Decision:
        names = ", ".join(name for name, _holds in rule.conditions) or "any event"
        matched = f"rule {rule.name!r} ({rule.location}) matched by {names}"
        if rule.approval.when == NEVER:
            return Decision(NEVER, f"{matched}; it does not approve", "not_approving", rule.hold)
        if event.status == "Started":
            blocked: Obstacle | None = release.STARTED
        elif context.approved_by_us:
            blocked = release.ALREADY_APPROVED
        else:
            blocked = rule.approval.blocked_by(event, context)
        if blocked is None:
            return Decision(rule.approval.when, f"{matched}; it approves")
        return Decision(rule.approval.when, f"{matched}; it approves, but not now: {blocked.text}", blocked.code)


def _rule(data: Any, location: SourceLocation) -> _Rule:
    _check_keys(data, RULE_KEYS, location)
    if "approve" in data and "hold" in data:
        raise PolicyError(f"{location.at('hold')}: approve and hold exclude each other; remove one")
    when = {} if data.get("when") is None else data["when"]
    _check_keys(when, tuple(CONDITIONS), location.at("when"))
    conditions, warnings = [], []
    for condition, value in when.items():
        here = location.at("when", condition)
        conditions.append((condition, _parsed(CONDITIONS[condition], value, here)))
        if condition in ("type", "previous_type"):
            warnings += type_warnings(str(here), as_list(value))
    approval = _approval(data["approve"], location.at("approve")) if "approve" in data else _ApprovalRule()
    hold = _parsed(parse_boolean, data.get("hold", False), location.at("hold"))
    name = data.get("name")
    return _Rule("" if name is None else str(name), str(location), tuple(conditions), approval, hold, tuple(warnings))


_APPROVAL_PARSERS: dict[str, Callable[[Any], Any]] = {
    "when": lambda value: parse_choice(value, APPROVALS, "time of approval"),
    "delay": parse_seconds,
    "time_left": parse_seconds,
    "on_failure": lambda value: parse_choice(value, ("hold", "approve"), "on_failure"),
}


def _approval(data: Any, location: SourceLocation) -> _ApprovalRule:
    if not isinstance(data, dict):
        return _ApprovalRule(_parsed(_APPROVAL_PARSERS["when"], data, location))
    _check_keys(data, tuple(_APPROVAL_PARSERS), location)
    read = {key: _parsed(_APPROVAL_PARSERS[key], value, location.at(key)) for key, value in data.items()}
    return _ApprovalRule(**{"when": NOW, **read})


def _parsed(parse: Callable[[Any], T], value: Any, location: SourceLocation) -> T:
    """Return the parsed value, or raise PolicyError with its location."""
    try:
        return parse(value)
    except ValueError as error:
        raise PolicyError(f"{location}: {error}") from None


def _check_keys(data: Any, known: tuple[str, ...], location: SourceLocation) -> None:
    if not isinstance(data, dict):
        problem = "it is empty" if data is None else f"expected a mapping, not {data!r}"
        raise PolicyError(f"{location}: {problem}; write some of the keys {', '.join(known)}")
    for key in data:
        _parsed(lambda given: check_key(given, known), key, location.at(key))
