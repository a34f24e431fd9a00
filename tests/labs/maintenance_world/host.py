# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A host in virtual seconds: its disk, and a process of the daemon that can be killed."""

from __future__ import annotations

import errno
import logging
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import patch

from azure_scheduled_events.document import ScheduledEvent
from azure_scheduled_events.errors import ImdsError
from azure_scheduled_events.tracking import Tracker
from hook_runner import record_files
from hook_runner.imds_health import ImdsHealth
from hook_runner.log import log_to
from hook_runner.maintenance.machine import Machine
from hook_runner.maintenance.open_records import OpenRecords
from hook_runner.maintenance.record import ApprovalRequest, Maintenance, State
from hook_runner.record_store import STALE
from hook_runner.runner import Runner
from maintenance_world.units import Killed, MortalStore, VirtualRuns

if TYPE_CHECKING:
    from maintenance_world.world import World

# each tick writes once at most, and comes to rest after a few; more writes in a second never end
_MOST_WRITES = 40


class Disk:
    """The daemon's folder, as another process sees it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(mode=0o700)

    def damage(self, name: str) -> None:
        """Overwrite a file."""
        (self.folder / name).write_bytes(b"junk")

    @property
    def is_stale(self) -> bool:
        """Whether the marker says that writes have failed since the last good one."""
        return (self.folder / STALE).exists()

    @property
    def is_paused(self) -> bool:
        """Whether the state has a pause."""
        try:
            return b'"pause": null' not in (self.folder / record_files.STATE).read_bytes()
        except FileNotFoundError:
            return False

    def open(self) -> Maintenance | None:
        """Return the open maintenance; ValueError if it is damaged."""
        try:
            return record_files.read(Maintenance, str(self.folder / record_files.OPEN))
        except FileNotFoundError:
            return None

    def state(self) -> State:
        return record_files.read(State, str(self.folder / record_files.STATE))

    def closed(self) -> list[Maintenance]:
        """Return the maintenances that are closed, oldest first."""
        stored = record_files.stored(str(self.folder)).maintenances
        return [each for each in reversed(stored) if each.ended is not None]


class Daemon:
    """A process of the daemon: the real runner with its records, without a poller and without commands."""

    machine_class: type[Machine] = Machine
    tracker_class: type[Tracker] = Tracker
    runs_class: type[VirtualRuns] = VirtualRuns
    store_class: type[MortalStore] = MortalStore

    def __init__(self, world: World) -> None:
        self.world = world
        log_to(logging.NullHandler())
        self._answers: list[tuple[int, str, bool]] = []
        self._writes: dict[int, int] = {}
        self.documents = 0
        settings, boot = world.settings, str(world.boot)
        store = self.store_class(settings.state_directory, boot, world.note, world.now)
        store.at = self._at
        runs = self.runs_class(world.units)
        with (
            patch("hook_runner.record_store.Tracker", self.tracker_class),
            patch("hook_runner.runner.Machine", self.machine_class),
        ):
            store.load()
            # runs and clock have the methods that the runner calls
            health = ImdsHealth()
            self.runner = Runner(settings, world.hooks, store, runs, world, health, self._send)  # type: ignore[arg-type]
        open_one = self.records.maintenance
        world.note(f"daemon: starts{f' with maintenance {open_one.number}' if open_one else ''}")

    @property
    def records(self) -> OpenRecords:
        return self.runner.records

    def second(self) -> None:
        """Live for a second: answers, a poll, and what follows."""
        world, runner = self.world, self.runner
        world.may_kill()
        for at, key, is_good in list(self._answers):
            if at <= world.second:
                self._answers.remove((at, key, is_good))
                error = None if is_good else ImdsError("no answer", retryable=True)
                runner.machine.approvals.answered(key, error, world.now())
                if is_good:
                    world.evidence.answered(key)
        document = world.azure.answer(world.second)
        if document is None:
            self.poll_failed()
            runner.tick()
        else:
            self.documents += 1
            world.evidence.documented(document)
            runner.document_received(document)

    def poll_failed(self) -> None:
        self.runner.machine.approvals.poll_failed()

    def command(self, what: str) -> None:
        """Carry out the command of an operator."""
        self.world.note(f"operator: {what}")
        if what == "pause":
            self.runner.pause("operator", None, "")
        elif what == "resume":
            self.runner.resume("operator")
        elif what in ("recover", "give-up"):
            self.runner.recover("operator", what == "give-up")
        else:
            for event in self.world.evidence.last_events[:1]:
                self._approve(event.key, ApprovalRequest("operator", "force" in what, "others" in what))

    def _approve(self, key: str, request: ApprovalRequest) -> None:
        asked = self.world.evidence.asked
        before = asked.get(key)
        self.world.evidence.requested(key, request)  # the runner sends at once what it may
        record = self.records.find(key)
        answer = None if record is None else self.runner.approve(record, request)
        if answer is None or not answer.accepted:
            asked.pop(key, None)
            asked.update({} if before is None else {key: before})

    def _send(self, event: ScheduledEvent) -> None:
        world = self.world
        world.may_kill()
        world.evidence.posted(event.key)
        world.approval_checks.check_post(event.key)
        world.azure.approve(event.key, world.second)
        world.may_kill()
        self._answers.append((world.second + world.chance.choice([0, 0, 1, 3]), event.key, world.chance.random() < 0.9))

    def _at(self, point: str) -> None:
        """Be at a point of a write."""
        world = self.world
        world.may_kill()
        if point == "begin":
            if world.is_disk_full():
                raise OSError(errno.ENOSPC, "the disk is full")
            self._writes = {world.second: self._writes.get(world.second, 0) + 1}
            if self._writes[world.second] > _MOST_WRITES:
                world.evidence.violate("the runner has effects without end")
                raise Killed
