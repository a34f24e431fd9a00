# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""One life of one host, second by second."""

from __future__ import annotations

import os
import random
import tempfile
from datetime import datetime
from pathlib import Path

from hook_runner.hooks.discovery import Hook
from hook_runner.record_files import OPEN, STATE
from hook_runner.records import FAILED, INTERRUPTED, OK, RECOVER, STAGES, TIMEOUT, Cause
from maintenance_world.approval_checks import ApprovalChecks
from maintenance_world.azure import OWN, REBOOTING, REMOVING, Azure, AzureEvent, date_at
from maintenance_world.evidence import Evidence, Start
from maintenance_world.hook_checks import HookChecks
from maintenance_world.host import Daemon, Disk
from maintenance_world.life_checks import LifeChecks
from maintenance_world.plan import ACTIVE, LENGTH, Plan, make_plan
from maintenance_world.units import Behaviour, Killed, Unit, Units

# the files of a life, in memory where the system has a place for that
MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else None


class World:
    """Everything around the state machine.

    Attributes:
        trace: what happened, for a person.
        settings, hooks: those of the plan, with files in the folder of this world.
    """

    def __init__(self, plan: Plan, seed: int, folder: Path, daemon_class: type[Daemon] = Daemon) -> None:
        self.plan = plan
        self.chance = random.Random(seed)
        self.azure = Azure(plan.events, plan.backends, self.chance)
        self.units = Units(lambda: float(self.second), self._draw, self._began, self._stopped, self._ended)
        self.disk = Disk(folder / "state")
        self._gate, self._hooks_directory = folder / "go", folder / "hooks.d"
        self.settings = plan.settings._replace(
            resource_name=OWN,
            state_directory=str(self.disk.folder),
            hooks_directory=str(self._hooks_directory),
            gates={"go": str(self._gate)} if plan.rule.needs_gate else {},
        )
        self.hooks = {stage: tuple(map(self._write_hook, plan.hooks[stage])) for stage in STAGES}
        self.second = 0
        self.boot = 1
        self.daemon: Daemon | None = None
        self.is_gate_open = False
        self._turn_gate(True)
        self.is_removed = False
        self.trace: list[str] = []
        self.evidence = Evidence(self)
        self.approval_checks = ApprovalChecks(self, self.evidence)
        self.hook_checks = HookChecks(self, self.evidence)
        self._life_checks = LifeChecks(self, self.evidence)
        self._daemon_class = daemon_class
        self.maintenances = 0
        self._down_until = self._frozen_until = 0

    def live(self) -> list[str]:
        """Live to the end, or to the first violation; return the violations."""
        while self.second < LENGTH and not self.is_removed and not self.evidence.violations:
            self._live_a_second()
            self.second += 1
        if not self.evidence.violations:
            self._life_checks.check_end()
        self.maintenances = len(self.disk.closed())
        return self.evidence.violations

    def note(self, text: str) -> None:
        self.trace.append(f"{self.second:5d} {text}")

    def may_kill(self) -> None:
        """Kill the daemon here, or not."""
        if self.second < ACTIVE and self.plan.kill_rate and self.chance.random() < self.plan.kill_rate:
            raise Killed

    def shift_at(self, second: int) -> int:
        """Return the seconds by which the server's clock is ahead."""
        return sum(shift for begins, ends, shift in self.plan.jumps if begins <= second < ends)

    def now(self) -> datetime:
        """Return the time by the server's clock."""
        return date_at(self.second + self.shift_at(self.second))

    def is_disk_full(self) -> bool:
        return any(begins <= self.second < ends for begins, ends in self.plan.full)

    def _live_a_second(self) -> None:
        second, plan = self.second, self.plan
        for event in self.azure.advance(second):
            self._hit(event)
        for text in self.azure.trace:
            self.note(text)
        self.azure.trace.clear()
        if second in plan.reboots and second >= self._down_until:
            self._reboot(self.chance.randint(5, 120))
        if second < max(self._down_until, self._frozen_until) or self.is_removed:
            return
        if second % 100 == 0:
            self._turn_gate(second > ACTIVE or self.chance.random() < 0.7)
        self.units.advance()
        if plan.damaged_at == second and self.disk.open():
            self._damage(OPEN)
            self.evidence.record_lost()
        if plan.forgets_at == second:
            self._damage(STATE)
            self.evidence.disturbed()
        try:
            self._let_daemon_live()
        except Killed:
            self.note("daemon: killed")
            self.daemon = None
            self.evidence.disturbed()
        self._check_second()

    def _damage(self, name: str) -> None:
        self.note(f"host: {name} is damaged, and the daemon is killed")
        self.disk.damage(name)
        self.daemon = None

    def _turn_gate(self, is_open: bool) -> None:
        self.is_gate_open = is_open
        if is_open:
            self._gate.touch(mode=0o644)
        else:
            self._gate.unlink(missing_ok=True)

    def _write_hook(self, hook: Hook) -> Hook:
        path = self._hooks_directory / hook.stage / hook.name
        path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        path.touch(mode=0o755)
        return hook._replace(path=str(path))

    def _draw(self, stage: str, name: str) -> Behaviour:
        behaviour, chance = self.plan.behaviours[(stage, name)], self.chance
        is_calm = self.second > ACTIVE
        fails = chance.random() < behaviour.fails and not (is_calm and stage == RECOVER)
        seconds = max(0.2, chance.expovariate(1 / behaviour.mean))
        if chance.random() < behaviour.hangs and not is_calm:
            seconds = float("inf")
        if is_calm and stage == RECOVER:
            seconds = min(seconds, 1.0)
        return Behaviour(seconds, int(fails), chance.random() < behaviour.ignores_term)

    def _began(self, unit: Unit) -> None:
        start = Start(self.second, self.boot, unit.stage, unit.name, unit.key, unit.event_type)
        self.hook_checks.check_start(start)
        self.evidence.started(unit, start)

    def _stopped(self, unit: Unit) -> None:
        self.note(f"hook: {unit.title} gets TERM")
        self.evidence.stopped.add(unit.serial)

    def _ended(self, unit: Unit) -> None:
        state = TIMEOUT if unit.cause is Cause.TIME_LIMIT else FAILED if unit.exit_status else OK
        self.evidence.ended(unit, state)

    def _check_second(self) -> None:
        """Check what has to be true at the end of each second in which the daemon has read a document."""
        evidence = self.evidence
        if self.daemon is None or not evidence.read or evidence.read[-1].second != self.second:
            self.hook_checks.forget()
            self.approval_checks.forget()
            return
        evidence.survived = self.second
        own = [event for event in evidence.last_events if evidence.is_own(event, self.second)]
        self._life_checks.check_second(own)
        self.hook_checks.check_second(own)
        self.approval_checks.check_second(own)

    def _let_daemon_live(self) -> None:
        if self.daemon is None:
            if self.chance.random() < (0.3 if self.second < ACTIVE else 1.0):
                self.evidence.process_started()
                self.daemon = self._daemon_class(self)
            return
        self.daemon.second()
        for at, what in self.plan.operators:
            if at == self.second:
                self.evidence.commanded(what)
                self.daemon.command(what)

    def _hit(self, event: AzureEvent) -> None:
        if OWN not in event.vms:
            return
        self.note(f"host: {event.event_type} {event.event_id} stops the VM")
        self.evidence.disturbed()
        if event.event_type in REBOOTING:
            self._reboot(self.chance.randint(5, 60))
        elif event.event_type == "Freeze":
            self._frozen_until = self.second + 6
        elif event.event_type in REMOVING:
            self.is_removed = self.chance.random() < 0.3

    def _reboot(self, away: int) -> None:
        self.note(f"host: reboots, and is away for {away} s")
        self.boot += 1
        for unit in self.units.running():
            self.evidence.ended(unit, INTERRUPTED)
        self.evidence.interrupted.update(unit.serial for unit in self.units.by_number.values())
        self.units.by_number.clear()
        self.daemon = None
        self._down_until = self.second + away
        self.evidence.disturbed(until=self._down_until)


def live(profile: str, seed: int, daemon_class: type[Daemon] = Daemon) -> World:
    """Return the world after the life of a seed; its files are gone."""
    plan = make_plan(profile, random.Random(f"{profile} {seed}"))
    with tempfile.TemporaryDirectory(prefix="life-", dir=MEMORY) as folder:
        world = World(plan, seed, Path(folder), daemon_class)
        world.live()
        return world
