# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""One VM of the fleet: its boots, its disk with the records, its hook processes and its daemon."""

from __future__ import annotations

import math
import random
import shutil
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

from azure_scheduled_events.document import EventDocument
from azure_scheduled_events.errors import ImdsError, ImdsRefused, ImdsUnreachable
from fleet_simulation.agenda import Agenda
from fleet_simulation.azure_model import Group, date_at
from fleet_simulation.daemon import NEVER, Daemon, ImdsOfHost
from fleet_simulation.ledger import Ledger
from fleet_simulation.profiles import HOOK_TIMEOUT, Profile
from maintenance_world.units import Behaviour, Killed, Unit, Units, VirtualRuns

# share of the polls that the second backend answers
SECOND_BACKEND = 0.3
# share of the decisions to approve that fall while the poller waits for an answer
POLL_UNDER_WAY = 0.3
# share of the hook runs that end by KILL only
IGNORES_TERM = 0.2


class Host:
    """One VM.

    ``name`` is its resource name, ``leader`` the value of the setting; ``folder`` contains its disk. ``approve`` takes
    (host, EventId) at Azure, or raises ImdsError. ``decided`` is called with the EventId when the daemon has decided to
    approve it. ``failing_hooks`` is the share of the hook runs that fail, and the half of it that hangs.

    Attributes:
        ledger: what was observed of this host, apart from its daemon's own records.
        outage_until: moment until which IMDS does not answer.
        is_up: whether the VM runs.
    """

    def __init__(
        self,
        name: str,
        group: Group,
        profile: Profile,
        leader: str,
        folder: Path,
        agenda: Agenda,
        chance: random.Random,
        approve: Callable[[Host, str], None],
        decided: Callable[[str], None],
        failing_hooks: float,
    ) -> None:
        self.name, self.group, self.profile, self.leader = name, group, profile, leader
        self.agenda, self.chance = agenda, chance
        self.outage_until = 0.0
        self.is_up = False
        self.daemon: Daemon | None = None
        self.ledger = Ledger(name, profile)
        self._approve, self._decided = approve, decided
        self._failing_hooks = failing_hooks
        self._folder = folder / name
        self._vm_number = self._boots = 0
        self._booted_at = 0.0
        self._wall_offset = timedelta(seconds=chance.choice((0, 0, 0, 2, -40, 5000)))
        self._laziness = chance.choice((5.0, 15.0, 30.0))
        self._wake_at = math.inf
        self._units = self._boot()

    def power_on(self) -> None:
        """Boot, and start the daemon."""
        self.is_up = True
        self.start_daemon()

    def start_daemon(self) -> None:
        """Start the daemon, unless it runs or the host is down."""
        if self.is_up and self.daemon is None:
            self.ledger.note(self.agenda.now, "daemon starts")
            settings = self.profile.settings._replace(
                leader=self.leader, state_directory=str(self._folder / "state"), run_directory=str(self._folder / "run")
            )
            vm_id = f"{self.name}-{self._vm_number}"
            imds = ImdsOfHost(self._monotonic, self._events, partial(self._approve, self), self._instance(vm_id))
            runs = VirtualRuns(self._units)
            boot = f"{vm_id} boot {self._boots}"
            self.daemon = Daemon(
                self.profile, settings, imds, runs, self._monotonic, self._wall, boot, self._is_poll_under_way
            )
            self.wake_in(0.0)

    def kill_daemon(self, back_in: float) -> None:
        """End the daemon without notice, and start it again after these seconds."""
        if self.daemon is not None:
            self.ledger.disturbed(self.agenda.now, "daemon is killed")
            self.daemon = None
            self.agenda.after(back_in, self.start_daemon)

    def kill_at_write(self, point: str) -> None:
        """Kill the daemon at a point of the next write of its records."""

        def kill(now_at: str) -> None:
            if now_at == point:
                raise Killed

        if self.daemon is not None:
            self.daemon.store.at = kill
            self.ledger.disturbed(self.agenda.now, f"the next write kills the daemon ({point})")

    def fail_imds(self, seconds: float) -> None:
        """Let IMDS not answer for this host."""
        self.outage_until = max(self.outage_until, self.agenda.now + seconds)
        self.ledger.disturbed(self.outage_until, f"IMDS fails for {seconds:.0f} s")
        if self.daemon is not None:
            self.daemon.poll_soon(0.5)
            self.wake_in(self.daemon.next_poll_in())

    def reboot(self, shutdown: float, seconds: float, text: str) -> None:
        """Begin to shut down; the boot ends after `shutdown` seconds, and the next one begins `seconds` later."""
        if not self.is_up:
            return
        units = self._units
        units.is_going_down = True

        def end_boot() -> None:
            if self._units is units:
                self.go_down(seconds, text)

        self.agenda.after(shutdown, end_boot)

    def go_down(self, seconds: float, text: str) -> None:
        """End this boot; the next one begins after these seconds."""
        if not self.is_up:
            return
        self._power_off(text)
        self._units = self._boot()
        self.agenda.after(seconds, self.power_on)

    def replace(self, seconds: float, keeps_disk: bool) -> None:
        """Delete the VM; another one of the same name begins after these seconds."""
        if not self.is_up:
            return
        self._power_off("the VM is deleted")
        if not keeps_disk:
            shutil.rmtree(self._folder, ignore_errors=True)
        self._vm_number += 1
        self._units = self._boot()
        self.ledger.is_another_vm(self.agenda.now)
        self.agenda.after(seconds, self.power_on)

    def document_changed(self) -> None:
        """Note that the group has another document."""
        if self.daemon is not None:
            self.daemon.poll_soon(self.chance.random())
            self.wake_in(self.daemon.next_poll_in())

    def wake_in(self, seconds: float) -> None:
        """Run the daemon's main loop in these seconds, or earlier if it is due earlier."""
        at = self.agenda.now + seconds
        if at < self._wake_at and at < NEVER:
            self._wake_at = at
            self.agenda.at(at, partial(self._step, at))

    def _step(self, at: float) -> None:
        if at != self._wake_at:
            return  # an earlier wake has replaced it
        self._wake_at = math.inf
        if self.daemon is None:
            return
        try:
            pause = self.daemon.step(self.agenda.now <= self.group.settled_at + 1.0, self._laziness)
        except Killed:
            self.kill_daemon(self.chance.uniform(0.5, 20.0))
            return
        if self.daemon.is_idle:
            self.ledger.daemon_is_idle()
        self.wake_in(pause)

    def _events(self) -> EventDocument:
        if self.agenda.now < self.outage_until:
            self.ledger.poll_failed()
            raise self._error()
        document = self.group.document(self.agenda.now, self.chance.random() < SECOND_BACKEND)
        self.ledger.document(self.agenda.now, document)
        return document

    def _error(self) -> ImdsError:
        status = self.chance.choice((None, 410, 429, 500, 503))
        if status is None:
            return ImdsUnreachable("no answer within 10 s")
        return ImdsRefused(f"IMDS answered {status}", status=status)

    def _is_poll_under_way(self, event_id: str) -> bool:
        """Take a decision to approve; return whether the answer of a poll comes before the poller can send it."""
        self._decided(event_id)
        return self.chance.random() < POLL_UNDER_WAY

    def _instance(self, vm_id: str) -> dict[str, object]:
        return {"compute": {"name": self.name, "vmId": vm_id}}

    def _monotonic(self) -> float:
        return self.agenda.now - self._booted_at

    def _wall(self) -> datetime:
        return date_at(self.agenda.now) + self._wall_offset

    def _boot(self) -> Units:
        self._boots += 1
        self._booted_at = self.agenda.now - 10.0
        return Units(lambda: self.agenda.now, self._draw_run, self._began, self._await, self._ended)

    def _power_off(self, text: str) -> None:
        self.is_up, self.daemon = False, None
        self.ledger.boot_ended(self.agenda.now, text)
        self._units.by_number.clear()

    def _draw_run(self, stage: str, hook: str) -> Behaviour:
        kind, ignores_term = self.chance.random(), self.chance.random() < IGNORES_TERM
        if kind < self._failing_hooks / 2:
            return Behaviour(math.inf, ignores_term=ignores_term)
        seconds = self.chance.choice((0.3, 2.0, 8.0, 25.0)) * self.chance.uniform(0.5, 1.5)
        return Behaviour(min(seconds, HOOK_TIMEOUT / 2), int(kind < self._failing_hooks), ignores_term)

    def _began(self, unit: Unit) -> None:
        self.ledger.run_began(self.agenda.now, unit)
        self._await(unit)

    def _await(self, unit: Unit) -> None:
        self.agenda.at(unit.ends, self._units.advance)

    def _ended(self, unit: Unit) -> None:
        self.ledger.run_ended(self.agenda.now, unit)
        if self.daemon is not None:
            self.wake_in(0.0)
