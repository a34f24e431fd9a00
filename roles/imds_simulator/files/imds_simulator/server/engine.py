# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The running simulation: world, clock, faults, log, and the ticker."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Iterable
from typing import Any, Callable

from ..faults.fault import Fault
from ..faults.registry import ActiveFault, FaultRegistry
from ..model.events import Occurrence
from ..model.simulation import Simulation
from ..model.world import Scope
from ..printable_text import printable
from ..protocol.contract import ImdsContract
from ..protocol.rate_limit import RateLimit
from ..protocol.request import UNKNOWN
from ..protocol.resource_ids import ResourceIds
from ..scenario.groups import Vm
from ..scenario.plans import Scenario
from .activity_log import ActivityLog, line_text
from .clock import Clock
from .impact import Impact
from .publisher import Publisher


class Engine:
    """A running scenario. ``print_line`` prints a line of the log."""

    def __init__(self, scenario: Scenario, clock: Clock, print_line: Callable[[str], None]) -> None:
        self.scenario = scenario
        self.clock = clock
        self.started = clock.now()
        self.simulation = Simulation(scenario)
        self.world = self.simulation.world
        self.service = ImdsContract(self.simulation)
        self.resource_ids = ResourceIds(self.world.groups)
        self.activity_log = ActivityLog()
        self.faults = FaultRegistry(self.world.vms)
        self.rate = RateLimit()
        self._above_rate: set[str] = set()
        self.impact = Impact(scenario.impact, self.log)
        self.publisher: Publisher | None = None
        if scenario.notify is not None:
            self.publisher = Publisher(scenario.notify, self.world, self.resource_ids, clock, self.faults, self.log)
        self._print_line = print_line
        self._wake_up = asyncio.Event()
        if scenario.begin == "start":
            self._begin(self.started)

    # -- time

    def settle(self) -> float:
        """Run the steps that are due and return the present time of the simulator's clock."""
        now = self.clock.now()
        if self.simulation.next_due <= now:
            self.record(self.simulation.advance_to(now))
        return now

    def advance(self, simulated: float) -> float:
        """Move the clock forward by simulated seconds, and run the steps that become due, in order."""
        self.clock.advance(self.world.to_wall_seconds(simulated))
        now = self.settle()
        self.wake_ticker()
        return now

    def wake_ticker(self) -> None:
        """Wake the ticker, because the next step may be due earlier than it expects."""
        self._wake_up.set()

    async def tick(self, after_step: Callable[[], Awaitable[None]]) -> None:
        """Run steps when they are due, until cancelled; ``after_step()`` is awaited each time."""
        while True:
            now = self.settle()
            await after_step()
            due = min(self.simulation.next_due, self.faults.next_refusal_change(now))
            await self.clock.wait(due, self._wake_up)

    # -- occurrences

    def begin_on_first_request(self, now: float) -> None:
        """Begin simulated time at the first request, for which the scenario waits."""
        self._begin(now)
        self.record(self.simulation.advance_to(now))

    def within_rate(self, vm: Vm, route: str) -> bool:
        """Count a request and return False if the rate limit refuses it (reference 1.7), as it does with ``strict``.

        The log has a line when ``vm`` begins to be above the limit.
        """
        knobs = self.world.knobs
        if not knobs.rate_limit or route == UNKNOWN:
            return True
        if self.rate.allows(vm.name, knobs.rate_limit, time.monotonic(), strict=knobs.strict):
            self._above_rate.discard(vm.name)
            return True
        if vm.name not in self._above_rate:
            self._above_rate.add(vm.name)
            self.log("rate-limit", vm=vm.name, limit=knobs.rate_limit)
        return not knobs.strict

    def register_request(self, vm: Vm, now: float) -> Scope:
        """Record a valid request for the document of ``vm`` and return the scope.

        The first request enables the service (docs/reference/scheduled-events.md 4.1).
        """
        scope = self.world.scope_for(vm)
        if self.world.record_request(scope, now):
            self.simulation.note_enabled(now)
            self.wake_ticker()
            self.log("enabled", group=scope.group, scope=scope.key, by=vm.name, incarnation=scope.incarnation)
        return scope

    def note_views(self, vm: Vm, version: str) -> None:
        """Log the events that ``vm`` receives for the first time, in its document of ``version``."""
        document = self.service.documents.document(self.world.scope_for(vm), version)
        for event in document.events:
            if vm.name not in event.seen_by:
                event.seen_by.add(vm.name)
                self.log("seen", group=event.group, event=event.name, id=event.id, vm=vm.name)

    def record(self, occurrences: Iterable[Occurrence]) -> None:
        """Log ``occurrences`` of a change, start their impact commands, and queue their notifications.

        It wakes the ticker, because after a change another step may be due first, also without an occurrence.
        """
        for each in occurrences:
            self._log_at(each.moment, each.kind, group=each.group, event=each.event, id=each.event_id, **each.detail)
            self.impact.run_for(each)
            if self.publisher is not None:
                self.publisher.publish(each)
        self.wake_ticker()

    def log(self, what: str, **fields: Any) -> None:
        """Log a line that is not an occurrence of the model."""
        self._log_at(self.clock.now(), what, **fields)

    def _log_at(self, moment: float, what: str, **fields: Any) -> None:
        line = self.activity_log.add_line(moment, what, **fields)
        self._print_line(printable(f"{line['time']} {line_text(line, self.world.vms)}"))

    # -- faults

    def inject(self, fault: Fault, base: float) -> ActiveFault:
        """Add a fault; its times count from ``base``, a moment of the simulator's clock."""
        active = self.faults.inject(fault, base, self.clock.now(), self.world.moment_of)
        self.wake_ticker()
        return active

    def _begin(self, epoch: float) -> None:
        self.simulation.begin(epoch)
        for fault in self.scenario.faults:
            self.inject(fault, epoch)
