# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Random lives of a host: the configuration, the events, and everything that goes wrong."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from azure_scheduled_events.policy import Policy
from hook_runner.config.settings import HookSettings, Settings
from hook_runner.hooks.discovery import Hook
from hook_runner.records import EMERGENCY, PREPARE, RECOVER, STARTED
from maintenance_world.azure import ADVICE, OWN, TYPES, AzureEvent, Backends, Change, Difference

PROFILES = ("calm", "urgent", "backends", "forever", "sticky", "sticky90", "faults", "kills", "all")
_NOTICE = {"Freeze": (60, 900), "Reboot": (60, 900), "Redeploy": (60, 600), "Preempt": (10, 30), "Terminate": (60, 300)}
# events and faults happen in the first part of a life; in the second one everything comes to an end
ACTIVE, LENGTH = 1800, 4200


@dataclass(frozen=True)
class Rule:
    """The policy of a life, apart from its form in `Settings`.

    Attributes:
        approve: "never", "manual", "now" or "after_prepare".
        approves_failed: whether it approves after a failed preparation.
        hold_above: it holds an event with more seconds left; None if it holds none.
        needs_gate: whether it approves only while the gate "go" is open.
    """

    approve: str
    approves_failed: bool
    hold_above: float | None
    needs_gate: bool

    def as_policy(self) -> Policy:
        rules: list[dict[str, Any]] = []
        if self.hold_above is not None:
            rules.append({"name": "hold", "when": {"time_left": {"gt": self.hold_above}}, "hold": True})
        if self.approve != "never":
            on_failure = "approve" if self.approves_failed else "hold"
            when = {"gate": "go"} if self.needs_gate else {}
            rules.append({"name": "rule", "when": when, "approve": {"when": self.approve, "on_failure": on_failure}})
        return Policy.from_mapping({"rules": [*rules, {"name": "others", "when": {}}]})


@dataclass(frozen=True)
class Behaviour:
    """How the runs of a hook go: the chances to fail, to hang and to ignore TERM, and the mean seconds of a run."""

    fails: float
    hangs: float
    ignores_term: float
    mean: float


@dataclass
class Plan:
    """Everything about a life that is not drawn while it lasts.

    Attributes:
        full: periods in which the disk is full.
        kill_rate: chance of kill -9 at each point at which one may come.
        operators: (second, command).
        jumps: periods in which the server's clock is so many seconds ahead.
        damaged_at: second at which the file of the open maintenance is damaged and the daemon killed.
        forgets_at: the same for the file of the state.
    """

    settings: Settings
    hooks: dict[str, tuple[Hook, ...]]
    behaviours: dict[tuple[str, str], Behaviour]
    rule: Rule
    events: list[AzureEvent]
    backends: Backends = field(default_factory=Backends)
    full: list[tuple[int, int]] = field(default_factory=list)
    reboots: list[int] = field(default_factory=list)
    kill_rate: float = 0.0
    operators: list[tuple[int, str]] = field(default_factory=list)
    jumps: list[tuple[int, int, int]] = field(default_factory=list)
    damaged_at: int | None = None
    forgets_at: int | None = None


def make_plan(profile: str, chance: random.Random) -> Plan:
    """Return a random life of one of PROFILES."""
    plan = _configuration(chance)
    plan.events = _urgent(plan, chance) if profile == "urgent" else _events(chance)
    if profile in ("backends", "all"):
        plan.backends.lags = (chance.randint(0, 3), chance.randint(0, 3))
        plan.backends.share = chance.choice([0.5, 0.2, 0.9])
        for begins, ends in _periods(chance, chance.randint(0, 5), 20):
            plan.backends.differences.append(_difference(begins, ends, plan, chance))
    if profile in ("forever", "sticky", "sticky90"):
        plan.backends.share = chance.choice([0.5, 0.5, 0.2, 0.8])
        plan.backends.turn = {"sticky": chance.choice([5, 20, 45]), "sticky90": 90}.get(profile, 0)
        plan.backends.differences = [_difference(0, LENGTH, plan, chance) for _ in range(2)]
    if profile in ("faults", "all"):
        plan.backends.failing = _periods(chance, chance.randint(0, 4), 200)
        ids = [event.event_id for event in plan.events]
        plan.backends.unreadable = [
            (begins, ends, chance.choice(ids)) for begins, ends in _periods(chance, chance.randint(0, 3), 60)
        ]
        plan.reboots = [chance.randint(10, ACTIVE) for _ in range(chance.choice([0, 0, 1, 2]))]
        plan.full = _periods(chance, chance.choice([0, 0, 1, 2]), 600)
        plan.jumps = [
            (begins, ends, chance.choice([-3600, -100, 100, 900]))
            for begins, ends in _periods(chance, chance.choice([0, 0, 0, 1]), 300)
        ]
        commands = ["pause", "resume", "approve", "approve others", "approve force others", "recover", "give-up"]
        plan.operators = [
            (chance.randint(5, ACTIVE), chance.choice(commands)) for _ in range(chance.choice([0, 0, 2, 4]))
        ]
    if profile in ("kills", "all"):
        plan.kill_rate = chance.choice([0.0, 0.001, 0.01, 0.05])
        plan.full = plan.full + _periods(chance, chance.choice([0, 0, 1]), 300)
        plan.reboots = plan.reboots + [chance.randint(10, ACTIVE) for _ in range(chance.choice([0, 0, 1]))]
        plan.forgets_at = chance.randint(10, ACTIVE) if chance.random() < 0.1 else None
        plan.damaged_at = chance.randint(10, ACTIVE) if chance.random() < 0.15 else None
    plan.operators = sorted([*plan.operators, (ACTIVE + 1, "resume")])
    return plan


def _configuration(chance: random.Random) -> Plan:
    hooks: dict[str, tuple[Hook, ...]] = {}
    behaviours = {}
    is_bad = chance.random() < 0.5
    for stage, most in ((PREPARE, 4), (RECOVER, 3), (STARTED, 1), (EMERGENCY, 1)):
        found = []
        for index in range(chance.randint(1 if stage == RECOVER else 0, most)):
            hook = _hook(stage, f"{index + 1}0-{stage}", chance)
            found.append(hook)
            behaviours[(stage, hook.name)] = Behaviour(
                chance.choice([0.0, 0.0, 0.2, 0.9]) if is_bad else 0.0,
                chance.choice([0.0, 0.0, 0.2]) if is_bad else 0.0,
                chance.choice([0.0, 0.3]),
                chance.choice([0.3, 3.0, 40.0, 200.0]),
            )
        hooks[stage] = tuple(found)
    rule = Rule(
        chance.choice(["never", "after_prepare", "after_prepare", "after_prepare", "now", "manual"]),
        chance.random() < 0.2,
        chance.choice([None, None, None, 100.0]),
        chance.random() < 0.15,
    )
    settings = Settings(
        policy=rule.as_policy(),
        leader=chance.choice(["self-only", "self-only", "first", "external"]),
        when_started=chance.choice(["stop", "stop", "finish"]),
        dry_run=chance.random() < 0.05,
        hooks={f"{each.stage}/{each.name}": each.settings._asdict() for some in hooks.values() for each in some},
    )
    return Plan(settings, hooks, behaviours, rule, [])


def _hook(stage: str, name: str, chance: random.Random) -> Hook:
    types: tuple[str, ...] = ()
    if stage == PREPARE and chance.random() < 0.3:
        types = tuple(chance.sample([*TYPES[:5], ADVICE], chance.randint(1, 4)))
    timeout = chance.choice([2.0, 20.0, 120.0, 600.0])
    settings = HookSettings(
        timeout=timeout,
        types=types,
        on_failure=chance.choice(
            ["continue", "continue", "stop"] if stage == RECOVER else ["continue", "stop", "ignore"]
        ),
        needs=min(timeout, chance.choice([0.0, 0.0, 5.0, 60.0])) if stage == PREPARE else 0.0,
        rerun=chance.random() < 0.9,
        persists=chance.random() < 0.3,
    )
    problem = "other users could change it" if stage != RECOVER and chance.random() < 0.02 else None
    return Hook(stage, name, f"/hooks.d/{stage}/{name}", settings, problem)


def _events(chance: random.Random) -> list[AzureEvent]:
    events: list[AzureEvent] = []
    at = chance.randint(5, 60)
    for number in range(chance.randint(1, 6)):
        event_type = "Preempt" if events and chance.random() < 0.35 else chance.choice(TYPES)
        low, high = _NOTICE.get(event_type, (60, 300))
        if event_type == "Preempt" and chance.random() < 0.7:
            low = 30
        not_before = at + chance.randint(low, high)
        vms = frozenset(chance.choice([[OWN], [OWN], [OWN], [OWN, "vm2"], ["vm2", "vm3"]]))
        event = AzureEvent(
            f"e{number}",
            event_type,
            vms,
            at,
            not_before,
            is_direct=chance.random() < 0.12,
            canceled_at=chance.randint(at + 1, not_before) if chance.random() < 0.3 else None,
            delay=chance.choice([0, 0, 3, 40]),
            lasts=chance.choice([5, 30, 120]),
            hits_after=chance.randint(0, 8),
        )
        event.changes = [_change(event, chance) for _ in range(chance.choice([0, 0, 0, 1, 2]))]
        events.append(event)
        at += chance.choice([0, 0, 1, 10, 60, 200, 600])
        if at > ACTIVE - 300:
            break
    if chance.random() < 0.25:  # an id that comes back after it was gone
        first = events[0]
        over = max([first.not_before, *(each.not_before or 0 for each in first.changes)]) + first.delay + first.lasts
        begins = over + chance.choice([5, 45, 120])
        events.append(
            AzureEvent(first.event_id, first.event_type, first.vms, begins, begins + 250, canceled_at=begins + 150)
        )
    return events


def _change(event: AzureEvent, chance: random.Random) -> Change:
    at = chance.randint(event.appears_at + 1, event.not_before + 10)
    kind = chance.choice(["vms", "vms", "not_before", "type"])
    if kind == "vms":
        return Change(at, vms=frozenset(chance.choice([[OWN], [OWN, "vm2"], ["vm2"], [OWN, "vm3"]])))
    if kind == "type":
        return Change(at, event_type=chance.choice(["Reboot", "Redeploy"]))
    return Change(at, not_before=max(at + 5, event.not_before + chance.randint(-200, 200)))


def _urgent(plan: Plan, chance: random.Random) -> list[AzureEvent]:
    """Return an event with long hooks, and Preempts that arrive while they run or while the host recovers."""
    for (stage, name), behaviour in list(plan.behaviours.items()):
        if stage in (PREPARE, RECOVER) and chance.random() < 0.6:
            hangs = max(behaviour.hangs, 0.3)
            plan.behaviours[(stage, name)] = Behaviour(behaviour.fails, hangs, behaviour.ignores_term, 200.0)
    at = chance.randint(5, 50)
    events = [
        AzureEvent(
            "e0",
            chance.choice(TYPES[:3]),
            frozenset([OWN]),
            at,
            at + chance.randint(200, 900),
            canceled_at=chance.choice([None, at + 90]),
        )
    ]
    for number in range(1, chance.randint(2, 4)):
        at += chance.randint(10, 150)
        events.append(AzureEvent(f"e{number}", "Preempt", frozenset([OWN]), at, at + 30, lasts=20))
    return events


def _difference(begins: int, ends: int, plan: Plan, chance: random.Random) -> Difference:
    event_id = chance.choice([event.event_id for event in plan.events])
    return Difference(begins, ends, chance.randint(0, 1), event_id, chance.choice(["hide", OWN, "vm2", "add", "later"]))


def _periods(chance: random.Random, count: int, longest: int) -> list[tuple[int, int]]:
    begins = [chance.randint(0, ACTIVE) for _ in range(count)]
    return [(each, min(ACTIVE, each + chance.randint(1, longest))) for each in begins]
