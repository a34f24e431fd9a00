# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Hook runs in virtual time, with the interface of `hook_runner.hooks.runs.HookRuns`.

Processes belong to the host: they outlive a daemon, and end with the boot.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hook_runner.hooks.run_identity import RunIdentity
from hook_runner.hooks.runs import RunResult
from hook_runner.hooks.spawning import HostEnds
from hook_runner.records import Cause

SIGTERM = -15


@dataclass(eq=False)
class Process:
    """One hook that runs, or that has ended and whose result was not removed yet.

    Attributes:
        ends_at: moment at which it ends by itself or at its supervisor's limit.
        exit_status: its exit status then.
    """

    number: int
    identity: RunIdentity
    began_at: float
    ends_at: float
    exit_status: int
    cause: Cause = Cause.NONE
    has_ended: bool = False


class HostProcesses:
    """The hook processes of one host and one boot.

    Args:
        draw: returns seconds and exit status of a run; infinite seconds for one that hangs.
        began: called with each process that begins.
        ended: called with each process that ends, by itself or on request.
        later: runs an action at a moment.
        now: virtual seconds.
    """

    def __init__(
        self,
        draw: Callable[[], tuple[float, int]],
        began: Callable[[Process], None],
        ended: Callable[[Process], None],
        later: Callable[[float, Callable[[], None]], None],
        now: Callable[[], float],
    ) -> None:
        self.by_number: dict[int, Process] = {}
        # whether the host goes down, so that systemd starts nothing
        self.is_going_down = False
        self.now = now
        self._draw = draw
        self._began = began
        self._ended = ended
        self._later = later
        self._is_over = False

    def start(self, number: int, identity: RunIdentity, limit: float) -> None:
        if self.is_going_down:
            raise HostEnds("the host shuts down")
        seconds, status = self._draw()
        now = self.now()
        process = Process(number, identity, now, now + seconds, status)
        if seconds > limit:
            process.ends_at, process.exit_status, process.cause = now + limit, SIGTERM, Cause.TIME_LIMIT
        self.by_number[number] = process
        self._began(process)
        self._await(process)

    def stop(self, process: Process, kill_after: float) -> None:
        """End a process now; one of several needs the KILL."""
        end = self.now() + (kill_after if process.number % 5 == 0 else 0.05)
        if end < process.ends_at:
            process.ends_at, process.exit_status, process.cause = end, SIGTERM, Cause.ENDED_EARLY
            self._await(process)

    def end_boot(self) -> None:
        """Forget all processes, and the folders with their results."""
        self._is_over = True
        self.by_number.clear()

    def _await(self, process: Process) -> None:
        self._later(process.ends_at, lambda: self._end(process))

    def _end(self, process: Process) -> None:
        if not self._is_over and not process.has_ended and self.now() >= process.ends_at:
            process.has_ended = True
            self._ended(process)


@dataclass
class _Watched:
    is_orphan: bool = False


class SimulatedRuns:
    """The runs as one daemon sees them; ``kill_after`` is the seconds between TERM and KILL."""

    def __init__(self, processes: HostProcesses, environment: Mapping[str, str], kill_after: float) -> None:
        self.environment, self.kill_after = environment, kill_after
        self._host = processes
        self._watched: dict[int, _Watched] = {}
        self._lost: dict[int, RunIdentity] = {}

    def start(
        self,
        step_id: int,
        path: str,
        input: bytes,
        variables: Mapping[str, str],
        limit: float,
        identity: RunIdentity,
        limits: Mapping[str, int],
    ) -> None:
        self._host.start(step_id, identity, limit)
        self._watched[step_id] = _Watched()

    def adopt(self, step_id: int) -> bool:
        found = step_id in self._host.by_number
        if found:
            self._watched.setdefault(step_id, _Watched())
        return found

    def lost(self, key: str) -> list[tuple[int, RunIdentity]]:
        return sorted((number, identity) for number, identity in self._lost.items() if identity.key == key)

    def is_lost(self, hook: str) -> bool:
        return any(identity.hook == hook for identity in self._lost.values())

    def claim(self, step_id: int) -> bool:
        self._lost.pop(step_id, None)
        return self.adopt(step_id)

    def end_lost(self) -> None:
        while self._lost:
            self._end_orphan(self._lost.popitem()[0])

    def stop(self, step_id: int, kill_after: float | None = None) -> None:
        process = self._host.by_number.get(step_id)
        if process is not None and not process.has_ended and step_id in self._watched:
            self._host.stop(process, self.kill_after if kill_after is None else kill_after)

    def collect_finished(self) -> list[tuple[int, RunResult]]:
        if not self._watched:
            return []
        ended = []
        for number, watched in list(self._watched.items()):
            process = self._host.by_number[number]
            if not process.has_ended:
                continue
            del self._watched[number]
            if watched.is_orphan:
                self.remove(number)
            else:
                seconds = process.ends_at - process.began_at
                ended.append((number, RunResult(process.exit_status, "", seconds, process.cause, process.cause.value)))
        return ended

    def is_held(self) -> bool:
        return self._host.is_going_down

    def has_orphans(self) -> bool:
        return any(watched.is_orphan for watched in self._watched.values())

    def remove(self, step_id: int) -> None:
        self._host.by_number.pop(step_id, None)

    def next_check_in(self) -> float | None:
        return None

    def stop_orphans(self, known_ids: set[int]) -> bool:
        for number, process in list(self._host.by_number.items()):
            if number not in known_ids and number not in self._watched:
                self._lost[number] = process.identity
        return bool(self._lost)

    def has_result(self) -> bool:
        """Return True if a run has ended that `collect_finished` would return."""
        return any(self._host.by_number[number].has_ended for number in self._watched)

    def _end_orphan(self, number: int) -> None:
        self._watched[number] = _Watched(is_orphan=True)
        process = self._host.by_number[number]
        if not process.has_ended:
            self._host.stop(process, self.kill_after)
