# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The running simulation: world, clock, faults and log in one place, and time passing by itself."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable
from typing import Any, Callable

from ..model.occurrence import Occurrence
from ..model.rules import Rules
from ..model.scopes import Scope
from ..model.simulation import Simulation
from ..model.world import World
from ..protocol.contract import ImdsContract
from ..protocol.rate_limit import RateLimit
from ..scenario.fault import Fault
from ..scenario.groups import Vm
from ..scenario.plans import Scenario
from ..times import iso
from .active_faults import ActiveFault, FaultRegistry
from .activity_log import ActivityLog
from .clock import Clock
from .impact import Impact

# the ticker looks at least so often (real seconds), should the system clock be set
_MAX_SLEEP = 3600.0


class Engine:
    """One scenario in motion. ``say`` prints a line for the person who watches."""

    def __init__(self, scenario: Scenario, clock: Clock, say: Callable[[str], None]) -> None:
        begins = scenario.begin == "start"
        self.scenario = scenario
        self.clock = clock
        self.started = clock.now()
        self.world = World(scenario.groups, Rules(scenario.knobs, scenario.speed))
        self.simulation = Simulation(
            self.world, scenario.events, scenario.incarnations, self.started if begins else None
        )
        self.service = ImdsContract(self.simulation)
        self.journal = ActivityLog()
        self.faults = FaultRegistry()
        self.rate = RateLimit()
        self.impact = Impact(scenario.impact, self.log)
        self._say = say
        self._poke: asyncio.Future[None] | None = None
        if begins:
            self._begin_faults()

    # -- time

    def settle(self) -> float:
        """Bring the world up to now and return now."""
        now = self.clock.now()
        if self.simulation.next_due() <= now:
            self.record(self.simulation.advance_to(now))
        return now

    def advance(self, simulated: float) -> float:
        """Move the clock by simulated seconds; whatever falls due on the way happens in order."""
        self.clock.advance(self.world.to_wall_seconds(simulated))
        now = self.settle()
        self.wake_ticker()
        return now

    def wake_ticker(self) -> None:
        """Make the ticker look again: something may be due earlier than it thinks."""
        if self._poke is not None and not self._poke.done():
            self._poke.set_result(None)

    async def tick(self, also: Callable[[], Awaitable[None]]) -> None:
        """Let time pass until cancelled; ``also()`` is awaited after every step."""
        while True:
            now = self.settle()
            await also()
            due = min(self.simulation.next_due(), self.faults.next_refusal_change(now))
            self._poke = asyncio.get_running_loop().create_future()
            try:
                # never 0: a due moment just ahead must not become a busy loop
                await asyncio.wait_for(self._poke, min(max(due - self.clock.now(), 0.001), _MAX_SLEEP))
            except asyncio.TimeoutError:
                pass

    # -- what happens

    def begin_on_first_request(self, now: float) -> None:
        """A client asks for the document: simulated time begins, when the scenario waits for that."""
        if self.world.epoch is None:
            self.simulation.begin(now)
            self._begin_faults()
            self.record(self.simulation.advance_to(now))
            self.wake_ticker()

    def register_request(self, vm: Vm, now: float) -> Scope:
        """Note a good request for the document of ``vm``: the first one enables the service (docs/reference/scheduled-events.md 4.1)."""
        scope = self.world.scope_for(vm)
        if scope.record_request(now, self.world.rules):
            self.simulation.reschedule()
            self.record(
                [
                    Occurrence(
                        now,
                        "enabled",
                        scope.group,
                        detail={"scope": scope.key, "by": vm.name, "incarnation": scope.incarnation},
                    )
                ]
            )
            self.wake_ticker()
        return scope

    def record(self, happened: Iterable[Occurrence]) -> None:
        """Log what happened and run the commands that go with it."""
        for each in happened:
            line = self.journal.add_occurrence(each)
            self.impact.happened(each)
            self._say(_sentence(line))

    def log(self, what: str, **fields: Any) -> None:
        """Log something that is no step of an event's life."""
        self._say(_sentence(self.journal.add_line(self.clock.now(), what, **fields)))

    # -- faults

    def inject(self, fault: Fault, base: float) -> ActiveFault:
        active = self.faults.inject(fault, base, self.world.rules)
        self.wake_ticker()
        return active

    def _begin_faults(self) -> None:
        for fault in self.scenario.faults:
            self.inject(fault, self.world.epoch if self.world.epoch is not None else self.started)

    def epoch(self) -> str:
        """Simulated time 0 for people."""
        return "at the first request" if self.world.epoch is None else iso(self.world.epoch)


def _sentence(line: dict[str, Any]) -> str:
    """One line of the log as text."""
    rest = " ".join(
        f"{key}={value}"
        for key, value in line.items()
        if key not in ("number", "time", "what") and value not in ("", None)
    )
    return f"{line['time']} {line['what']} {rest}"
