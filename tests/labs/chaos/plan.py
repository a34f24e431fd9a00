# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The plan of a seed: values that are drawn from it; equal seeds give equal plans."""

from __future__ import annotations

import random
from typing import NamedTuple

# the steps of the task files: two prepare a host, two recover it
DRAIN, SETTLE, WARM, JOIN = "drain", "settle", "warm", "join"
PREPARE, RECOVER = (DRAIN, SETTLE), (WARM, JOIN)
KINDS = ("Freeze",) * 4 + ("Reboot",) * 4 + ("Redeploy",) * 2 + ("Preempt",)
# with the short ones the event starts before a run has prepared, at least on a busy machine
NOTICES = (12, 30, 90, 90, 90, 90)
KILLS = ("kill-9", "kill-9", "kill-9-all", "ctrl-c", "ctrl-c")
# (kind, options) of faults of IMDS
FAULTS: tuple[tuple[str, dict[str, str]], ...] = (
    *((kind, {}) for kind in ("server-error", "gone", "not-found", "empty", "reset", "hang")),
    *((kind, {}) for kind in ("truncated", "html", "events-null", "cut-json")),
    *((kind, {"retry_after": "1s"}) for kind in ("unavailable", "too-many-requests")),
    *((kind, {"method": "POST"}) for kind in ("lost-answer", "lost-request", "server-error")),
    ("delay", {"delay": "2s"}),
)
FAULT_DURATIONS = (1, 3, 3, 8, 25)
# seconds after which a disturbance is healed; None: after the disturbed run
HEAL_DELAYS = (2.0, 5.0, 15.0, None, None)
AZURE_LOG_LINES = ("approval", "started", "started", "finished", "finished")
CAUSES = (
    *("controller killed", "host killed", "sshd killed", "connection cut"),
    *("controller killed", "prepare fails", "recover fails", "IMDS faulty"),
    *("controller killed", "second event", "host killed", "sshd killed"),
    *("connection cut", "controller killed", "event changes", "second run"),
)


class Event(NamedTuple):
    """An event of Azure; times in seconds."""

    kind: str
    resources: tuple[str, ...]
    notice: int
    started_for: int
    impact_for: int


class Failure(NamedTuple):
    """A step that fails once on a VM, before or after its effect."""

    vm: str
    step: str
    after_effect: bool


class Slow(NamedTuple):
    """A step that takes seconds on a VM."""

    vm: str
    step: str
    seconds: float


class Moment(NamedTuple):
    """A moment in the disturbed run.

    Attributes:
        what: `begin` of the run, a `mark` that a step writes, or a line of `azure`'s log.
        name: for a mark its `what` and step; for a line of the log its kind.
        vm: the VM of the mark.
        delay: seconds after that.
    """

    what: str
    name: str = ""
    vm: str = ""
    delay: float = 0.0


class Disturbance(NamedTuple):
    """One disturbance: its verb (`do_VERB` of `disturbances.Disturbances`), moment and arguments."""

    verb: str
    moment: Moment
    arguments: tuple[object, ...] = ()


class Plan(NamedTuple):
    """The plan of one seed.

    Attributes:
        cause: the kind of disturbance that this seed has in any case.
        events: the events that exist when the disturbed run begins.
        disturbances: those of the disturbed run.
        pause: seconds between the disturbed run and the next one.
        events_end: whether all events end before the next run.
    """

    cause: str
    vms: tuple[str, ...]
    events: tuple[Event, ...]
    failures: tuple[Failure, ...]
    slow: tuple[Slow, ...]
    disturbances: tuple[Disturbance, ...]
    pause: float
    events_end: bool
    pipelining: bool


def draw_plan(seed: int) -> Plan:
    """Return the plan of a seed, from which the cause follows; chance adds further disturbances."""
    chance = random.Random(seed)
    builder = PlanBuilder(chance)
    cause = CAUSES[seed % len(CAUSES)]
    builder.add(cause)
    for likelihood in (0.4, 0.3):
        if chance.random() < likelihood:
            builder.add(chance.choice(CAUSES))
    return Plan(
        cause,
        builder.vms,
        tuple(builder.events),
        tuple(builder.failures),
        tuple(builder.slow),
        tuple(builder.disturbances),
        pause=round(chance.choice((0.0, chance.uniform(0, 4))), 1),
        events_end=chance.random() < 0.5,
        pipelining=chance.random() < 0.7,
    )


class PlanBuilder:
    """Draws the parts of a plan; `_CAUSE` adds a disturbance of this cause."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self.vms = ("vm1", "vm2", "vm3")[: chance.choice((2, 3, 3))]
        self.events = self._first_events()
        self.failures: list[Failure] = []
        self.slow = [
            Slow(vm, chance.choice((*PREPARE, *RECOVER)), round(chance.uniform(0.5, 3), 1))
            for vm in self.vms
            if chance.random() < 0.35
        ]
        self.disturbances: list[Disturbance] = []

    def add(self, cause: str) -> None:
        """Add a disturbance of this kind, but not a second death of the controller."""
        if cause == "controller killed" and any(each.verb == "kill-controller" for each in self.disturbances):
            return
        getattr(self, "_" + cause.lower().replace(" ", "_"))()

    def _first_events(self) -> list[Event]:
        if self._chance.random() < 0.25:  # one event for each VM
            return [self._event((vm,)) for vm in self.vms[:2]]
        count = self._chance.choice((1, 2, len(self.vms), len(self.vms)))
        return [self._event(tuple(self._chance.sample(self.vms, count)))]

    def _event(self, resources: tuple[str, ...]) -> Event:
        chance = self._chance
        kind = chance.choice(KINDS)
        if kind == "Preempt":
            resources = resources[:1]
        return Event(kind, resources, chance.choice(NOTICES), chance.randint(2, 6), chance.choice((1, 1, 2)))

    def _affected_vm(self) -> str:
        return self._chance.choice(sorted({vm for event in self.events for vm in event.resources}))

    def _vm(self) -> str:
        """Return a VM, mostly one with an event."""
        return self._affected_vm() if self._chance.random() < 0.85 else self._chance.choice(self.vms)

    def _moment(self, vm: str = "") -> Moment:
        chance = self._chance
        delay = round(chance.uniform(0, 2.5), 2)
        vm = vm or self._affected_vm()
        return chance.choice(
            (
                Moment("begin", delay=round(chance.uniform(0.5, 20), 2)),
                Moment("mark", f"begin {chance.choice(PREPARE)}", vm, delay),
                Moment("mark", f"begin {chance.choice(PREPARE)}", vm, round(delay / 4, 2)),
                Moment("mark", f"ok {SETTLE}", vm, delay),
                Moment("mark", f"begin {chance.choice(RECOVER)}", vm, round(chance.uniform(0, 0.7), 2)),
                Moment("azure", chance.choice(AZURE_LOG_LINES), delay=delay),
                Moment("azure", chance.choice(AZURE_LOG_LINES), delay=round(delay / 4, 2)),
            )
        )

    def _disturb(self, verb: str, *arguments: object, vm: str = "") -> None:
        self.disturbances.append(Disturbance(verb, self._moment(vm), arguments))

    def _controller_killed(self) -> None:
        self._disturb("kill-controller", self._chance.choice(KILLS))

    def _host_killed(self) -> None:
        vm = self._vm()
        self._disturb("kill-host", vm, self._chance.choice((*HEAL_DELAYS, "after the next run")), vm=vm)

    def _sshd_killed(self) -> None:
        vm = self._vm()
        self._disturb("kill-sshd", vm, self._chance.choice((0.0, 0.0, *HEAL_DELAYS)), vm=vm)

    def _connection_cut(self) -> None:
        vm, chance = self._vm(), self._chance
        self._disturb(chance.choice(("cut", "cut-ssh", "cut-ssh")), vm, chance.choice(HEAL_DELAYS), vm=vm)

    def _prepare_fails(self) -> None:
        self._fail(self._chance.choice(PREPARE))

    def _recover_fails(self) -> None:
        self._fail(self._chance.choice(RECOVER))

    def _fail(self, step: str) -> None:
        self.failures.append(Failure(self._vm(), step, self._chance.random() < 0.5))

    def _imds_faulty(self) -> None:
        chance = self._chance
        vm = chance.choice((self._vm(), self._vm(), "all"))
        if chance.random() < 0.15:
            self._disturb("stale-imds", vm, chance.choice(("1", "2", "1,3", "2,4,6")))
            return
        kind, options = chance.choice(FAULTS)
        self._disturb("imds", vm, kind, {"for": chance.choice(FAULT_DURATIONS), **options})

    def _second_event(self) -> None:
        vms = self._chance.sample(self.vms, self._chance.randint(1, len(self.vms)))
        self._disturb("announce", *self._event(tuple(vms)))

    def _event_changes(self) -> None:
        self._disturb("change-event", self._chance.choice(("grow", "cancel", "start", "extend")))

    def _second_run(self) -> None:
        self._disturb("second-run")
