# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Hooks in virtual time: the units of a host, and the runs and the records as one process of the daemon has them.

With them `hook_runner.runner.Runner` carries out what the state machine decides; nothing else of it is simulated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple
from unittest.mock import patch

from hook_runner.hooks.one_run import RunOrder, RunResult
from hook_runner.hooks.runs import FoundUnit
from hook_runner.hooks.systemd import Stopping
from hook_runner.maintenance.record import Maintenance, State
from hook_runner.record_files import write as write_file
from hook_runner.record_store import RecordStore
from hook_runner.records import Cause

_SIGTERM = -15
# seconds until a hook has ended that does not ignore TERM
_ENDS_WITHIN = 0.5


class Killed(BaseException):
    """The daemon was killed with SIGKILL."""


class Behaviour(NamedTuple):
    """How one run of a hook goes; infinite seconds for one that hangs."""

    seconds: float
    exit_status: int = 0
    ignores_term: bool = False


@dataclass(eq=False)
class Unit:
    """A transient unit: it outlives the daemon, and its result stays until a daemon removes it.

    Attributes:
        key, event_type: of the event that the hook got as its input; "" without one.
        ends: when it ends by itself, at its limit, or because the daemon stopped it.
        serial: number of the start, for evidence; a run that never began may give its number to another one.
    """

    number: int
    stage: str
    name: str
    key: str
    event_type: str
    memo: bytes
    began: float
    ends: float
    exit_status: int
    ignores_term: bool
    cause: Cause = Cause.NONE
    is_stopped: bool = False
    has_ended: bool = False
    serial: int = 0

    @property
    def title(self) -> str:
        return f"{self.stage}/{self.name}"

    @property
    def result(self) -> RunResult:
        return RunResult(self.exit_status, "", self.ends - self.began, self.cause, self.cause.value)


class Units:
    """The units of one boot.

    Args:
        now: virtual seconds.
        draw: returns the behaviour of a run, from stage and name.
        began, stopped, ended: called with each unit that begins, gets TERM, or ends.
    """

    def __init__(
        self,
        now: Callable[[], float],
        draw: Callable[[str, str], Behaviour],
        began: Callable[[Unit], None],
        stopped: Callable[[Unit], None],
        ended: Callable[[Unit], None],
    ) -> None:
        self.by_number: dict[int, Unit] = {}
        # whether the host goes down, so that systemd starts nothing
        self.is_going_down = False
        self.now = now
        self._draw, self._began, self._stopped, self._ended = draw, began, stopped, ended

    def start(self, order: RunOrder) -> None:
        if self.is_going_down:
            raise Stopping("the host shuts down")
        hook, given = order.hook, order.environment
        now, found = self.now(), self._draw(hook.stage, hook.name)
        unit = Unit(
            order.number,
            hook.stage,
            hook.name,
            given["EVENT_ID"].casefold(),
            given["EVENT_TYPE"],
            order.memo,
            now,
            now + found.seconds,
            found.exit_status,
            found.ignores_term,
        )
        if found.seconds > order.limit:
            unit.ends, unit.exit_status, unit.cause = now + order.limit, _SIGTERM, Cause.TIME_LIMIT
        self._began(unit)
        self.by_number[order.number] = unit

    def stop(self, unit: Unit, kill_after: float) -> None:
        """Send TERM, and KILL after some seconds."""
        if unit.is_stopped or unit.has_ended:
            return
        unit.is_stopped = True
        end = self.now() + (kill_after if unit.ignores_term else min(_ENDS_WITHIN, kill_after))
        if end < unit.ends:
            unit.ends, unit.exit_status, unit.cause = end, _SIGTERM, Cause.NONE
        self._stopped(unit)

    def advance(self) -> None:
        """Let those units end whose time has come."""
        for unit in self.running():
            if self.now() >= unit.ends:
                unit.has_ended = True
                self._ended(unit)

    def running(self) -> list[Unit]:
        return [unit for unit in self.by_number.values() if not unit.has_ended]


class VirtualRuns:
    """The runs as one process of the daemon sees them, with the interface of `hook_runner.hooks.runs.HookRuns`."""

    def __init__(self, units: Units) -> None:
        self._units = units
        self._watched: set[int] = set()
        self._collected: list[int] = []

    def obstacle(self, seconds: float | None) -> str | None:
        return "the next boot" if self._units.is_going_down else None

    def start_unit(self, order: RunOrder) -> bool:
        self._watched.add(order.number)
        self._units.start(order)
        return True

    def find_units(self) -> list[FoundUnit]:
        return [FoundUnit(unit.title, unit.number, unit.memo) for unit in self._units.by_number.values()]

    def adopt(self, unit: FoundUnit, limit: float) -> None:
        self._watched.add(unit.number)

    def end_unit(self, unit: FoundUnit) -> None:
        self._units.by_number.pop(unit.number, None)

    def stop(self, number: int, kill_after: float) -> None:
        if number in self._watched:
            self._units.stop(self._units.by_number[number], kill_after)

    def collect_finished(self) -> list[tuple[int, RunResult]]:
        units = [self._units.by_number[number] for number in sorted(self._watched)]
        ended = [unit for unit in units if unit.has_ended]
        self._collected += [unit.number for unit in ended]
        self._watched.difference_update(self._collected)
        return [(unit.number, unit.result) for unit in ended]

    def remove_collected(self) -> None:
        while self._collected:
            self._units.by_number.pop(self._collected.pop(), None)

    def next_check_in(self) -> float | None:
        return None

    def has_result(self) -> bool:
        """Return True if `collect_finished` would return a run."""
        return any(self._units.by_number[number].has_ended for number in self._watched)


class MortalStore(RecordStore):
    """The real store, which calls `at` with the name of each point of a write: "begin", "end" and those between.

    `at` may raise Killed, or OSError for a full disk.
    """

    at: Callable[[str], None] = staticmethod(lambda point: None)

    def _write_all(self) -> None:
        self.at("begin")
        with patch("hook_runner.record_files.write", self._write_file):
            super()._write_all()
        self.at("end")

    def _write_file(self, path: str, record: Maintenance | State) -> None:
        if isinstance(record, State):
            self.at("state")
        write_file(path, record)

    def _move(self, name: str, to: str) -> None:
        self.at("move")
        super()._move(name, to)

    def _mark(self, name: str) -> None:
        self.at("mark")
        super()._mark(name)
