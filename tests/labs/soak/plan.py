# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The plan of a run: values that are drawn from a seed; equal seeds give equal plans."""

from __future__ import annotations

import random
import uuid
from typing import NamedTuple

from seed_campaign import IMDS_FAULTS

VM = "vm1"
PREPARE, EMERGENCY, STARTED, RECOVER = "prepare", "emergency", "started", "recover"
TYPES = ("Freeze", "Reboot", "Redeploy", "Preempt", "Terminate")
RESOURCES = (VM,) * 7 + ("vm1,vm2", "vm2,vm1", "vm2")
NOTICES = (900, 900, 600, 600, 60, 30, 30, 15, 8, 4)
_IS_FIRST = '[ "$(grep -c "^begin.$EVENT_STAGE/$me.$EVENT_ID" "$MARKS")" -le 1 ]'
# shell code of a hook between its marks
BODIES = {
    "works": ":",
    "slow": "sleep 0.5",
    "fails": "exit 3",
    "fails-first": f"{_IS_FIRST} && exit 3",
    "fails-until-healed": '[ -e "$MARKS.healed" ] || exit 3',
    "hangs": "sleep 1000",
    "hangs-first": f"{_IS_FIRST} && sleep 1000",
    "ignores-term": "trap : TERM; while :; do sleep 1000; done",
    "leaves-a-child": "sleep 1000 &",
    "kills-itself": "kill -9 $$",
}
PREPARES = (
    *("works",) * 14,
    *("slow", "slow", "fails", "hangs", "ignores-term", "leaves-a-child", "kills-itself", "fails-first", "hangs-first"),
)
RECOVERS = ("works",) * 10 + ("slow", "slow", "fails-first", "fails-until-healed", "leaves-a-child", "hangs-first")
SKEWS = (0, 0, 0, 3, -3, 3600, -3600, 5 * 86400, -5 * 86400)
FAULTS = (*IMDS_FAULTS, ("refuse", {}), ("close-idle", {"idle": "0.1s"}), ("delay", {"delay": "200ms"}))
FAULT_SECONDS = (0.5, 0.8, 1.5)
# numbers of the requests, from the next one on, that get an old document: every second one, two of
# four, one, and at random
PATTERNS = ("1", "1,3,5,7", "1-2", "1-2,5-6,9-10", "2,3,5,8,9", "1,4,6,7", "3")
LONG_EVERY = 20
EVENTS_OF_A_LONG_RUN = 20


class Hook(NamedTuple):
    """One hook; ``does``: a name of BODIES; ``persists``: whether its effect outlives a reboot."""

    stage: str
    name: str
    does: str
    persists: bool = False

    @property
    def path(self) -> str:
        return f"{self.stage}/{self.name}"


class Setup(NamedTuple):
    """The configuration of the host.

    Attributes:
        leader: the key of the configuration.
        when_started: the key of the configuration.
        skew: seconds by which the host's own clock is wrong from the start.
        operator: whether an operator repeats failed recoveries at the end, instead of waiting for
            the daemon.
    """

    hooks: tuple[Hook, ...]
    leader: str = "self-only"
    when_started: str = "stop"
    skew: int = 0
    operator: bool = False


class Action(NamedTuple):
    """One action: its verb (`do_VERB` of `actions.Actions`) and printable arguments."""

    verb: str
    arguments: tuple[object, ...] = ()

    def __str__(self) -> str:
        return " ".join(map(str, (self.verb, *self.arguments)))


class Plan(NamedTuple):
    """One run. ``is_long``: many events in one process, whose memory and descriptors are compared."""

    setup: Setup
    actions: tuple[Action, ...]
    is_long: bool = False


def draw_plan(seed: int) -> Plan:
    chance = random.Random(seed)
    if seed % LONG_EVERY == 0:
        return _long(chance)
    return Plan(_setup(chance), tuple(_PlanBuilder(chance).actions()))


def _setup(chance: random.Random) -> Setup:
    names = ["10-a"] if chance.random() < 0.4 else ["10-a", "20-b"]
    hooks = [Hook(PREPARE, name, chance.choice(PREPARES), chance.random() < 0.2) for name in names]
    hooks += [Hook(RECOVER, name, chance.choice(RECOVERS)) for name in names if chance.random() < 0.9]
    if chance.random() < 0.15:
        hooks.append(Hook(RECOVER, "90-all", chance.choice(RECOVERS)))
    hooks += [Hook(stage, "10-a", chance.choice(PREPARES)) for stage in (EMERGENCY, STARTED) if chance.random() < 0.5]
    leader, when_started = chance.choice(("self-only", "self-only", "first")), chance.choice(("stop", "finish"))
    return Setup(tuple(hooks), leader, when_started, chance.choice(SKEWS), chance.random() < 0.5)


def _long(chance: random.Random) -> Plan:
    """Return a plan with one event after the other, in one process without disturbances."""
    hooks = tuple(Hook(stage, "10-a", "works") for stage in (PREPARE, STARTED, RECOVER))
    actions = []
    for _number in range(EVENTS_OF_A_LONG_RUN):
        event_id = _event_id(chance)
        actions += [
            Action("announce", (event_id, chance.choice(TYPES), VM, {"notice": 600})),
            Action("until-mark", ("end", PREPARE)),
            Action("event", (event_id, chance.choice(("cancel", "complete")), {})),
            Action("rest"),
        ]
    return Plan(Setup(hooks), tuple(actions), is_long=True)


def _event_id(chance: random.Random) -> str:
    return str(uuid.UUID(int=chance.getrandbits(128))).upper()


class _PlanBuilder:
    """Draws the actions of an ordinary run: first an event, then any, each at a moment in the daemon's work."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._events: list[str] = []
        # remaining number of actions of a kind; those that take seconds to heal are rare
        self._left = {self._restart: 2, self._fault: 2, self._stale: 1, self._host: 1}

    def actions(self) -> list[Action]:
        chance = self._chance
        actions = [] if chance.random() < 0.3 else [Action("polls", (1,))]
        actions += self._new()
        for _number in range(chance.randint(3, 7)):
            actions += self._wait()
            kinds = [kind for kind, left in self._left.items() if left]
            kind = chance.choice([self._new, self._event, self._event, self._event, *kinds])
            if kind in self._left:
                self._left[kind] -= 1
            actions += kind()
        return actions + self._wait()

    def _wait(self) -> list[Action]:
        chance = self._chance
        ways = [
            Action("polls", (chance.choice((1, 2, 3)),)),
            Action("polls", (chance.choice((1, 2)),)),
            Action("pause", (round(chance.uniform(0, 0.4), 2),)),
            Action("until-mark", ("begin", chance.choice((PREPARE, PREPARE, RECOVER)))),
            Action("until-mark", ("end", PREPARE)),
        ]
        return [chance.choice(ways)]

    def _new(self) -> list[Action]:
        chance = self._chance
        if self._events and chance.random() < 0.2:
            event_id = chance.choice(self._events)  # IMDS refuses it while the event is not over
        else:
            event_id = _event_id(chance)
            self._events.append(event_id)
        kind, resources = chance.choice(TYPES), chance.choice(RESOURCES)
        if chance.random() < 0.12:
            return [Action("announce", (event_id, kind, resources, {"starts": "automatic_approval"}))]
        announced = Action("announce", (event_id, kind, resources, {"notice": chance.choice(NOTICES)}))
        if chance.random() < 0.5:
            return [announced]
        prepared = Action("until-mark", ("end", PREPARE))
        return [announced, prepared] if chance.random() < 0.5 else [announced, prepared, Action("polls", (2,))]

    def _event(self) -> list[Action]:
        chance, event_id = self._chance, self._chance.choice(self._events)
        verb, body = chance.choice(
            (
                ("cancel", {}),
                ("complete", {}),
                ("approve", {"as": "control-plane"}),
                ("change", {"notice": chance.choice(NOTICES)}),
                ("change", {"type": chance.choice(TYPES)}),
                ("change", {"resources": chance.choice(RESOURCES).split(",")}),
            )
        )
        action = Action("event", (event_id, verb, body))
        if verb in ("cancel", "complete") and chance.random() < 0.3:
            again = (event_id, chance.choice(TYPES), VM, {"notice": chance.choice(NOTICES)})
            return [action, *self._wait(), Action("announce", again)]
        return [action]

    def _fault(self) -> list[Action]:
        chance = self._chance
        if chance.random() < 0.2:
            skew = {"skew": chance.choice(("1h", "-1h", "2d")), "method": "GET"}
            return [Action("imds", ("date-skew", {"requests": chance.choice(("1", "1-2", "2")), **skew}))]
        kind, options = chance.choice(FAULTS)
        return [Action("imds", (kind, {"for": chance.choice(FAULT_SECONDS), **options}))]

    def _stale(self) -> list[Action]:
        return [Action("stale", (self._chance.choice(("empty", "empty", "this")), self._chance.choice(PATTERNS)))]

    def _restart(self) -> list[Action]:
        chance = self._chance
        how = chance.choice(("kill", "kill", "kill", "term", "reboot", "reboot"))
        first = [Action("clock", (chance.choice(SKEWS),))] if chance.random() < 0.2 else []
        return [*first, Action("restart", (how, chance.choice((0.0, 0.0, 0.3, 0.8))))]

    def _host(self) -> list[Action]:
        chance = self._chance
        if chance.random() < 0.5:
            return [Action("reload", (chance.choice((1000, 2000)),))]
        return [Action("clock", (chance.choice(SKEWS),))]
