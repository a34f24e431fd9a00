# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Hook runs in virtual time, with the interface of `hook_runner.hooks.runs.HookRuns`.

Processes belong to the host, as the units of systemd do: they outlive a daemon, and end with the boot.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hook_runner.hooks.discovery import Hook
from hook_runner.hooks.lost_runs import LostRun
from hook_runner.hooks.one_run import RunResult
from hook_runner.hooks.systemd import Stopping
from hook_runner.records import Cause

SIGTERM = -15


@dataclass(eq=False)
class Process:
    """One hook that runs, or that has ended and whose result was not removed yet.

    Attributes:
        identity: hook and event of the run.
        ends_at: moment at which it ends by itself or at the limit of its unit.
        exit_status: its exit status then.
    """

    number: int
    identity: LostRun
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

    def start(self, identity: LostRun, limit: float) -> None:
        number = identity.number
        if self.is_going_down:
            raise Stopping("the host shuts down")
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
            process.ends_at, process.exit_status, process.cause = end, SIGTERM, Cause.NONE
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


class SimulatedRuns:
    """The runs as one daemon sees them.

    ``kill_after`` is the seconds between TERM and KILL, ``monotonic`` the clock of the host.
    """

    def __init__(
        self,
        processes: HostProcesses,
        environment: Mapping[str, str],
        kill_after: float,
        monotonic: Callable[[], float],
    ) -> None:
        self.environment, self.kill_after = environment, kill_after
        self._monotonic = monotonic
        self.lost: dict[int, LostRun] = {}
        self._host = processes
        self._watched: set[int] = set()
        self._orphans: set[int] = set()

    def obstacle(self, seconds: float) -> str | None:
        if self._host.is_going_down:
            return "the next boot"
        return "the end of hooks that no record has" if self._orphans else None

    def start(self, number: int, hook: Hook, input: bytes, variables: Mapping[str, str], limit: float) -> None:
        event = json.loads(input)
        key, life = str(event["event_id"]).casefold(), int(event["life"])
        self._host.start(LostRun(number, hook.stage, hook.name, self._monotonic(), key, life), limit)
        self._watched.add(number)

    def adopt(self, number: int, stage: str, hook: str) -> bool:
        self.lost.pop(number, None)
        found = number in self._host.by_number
        if found:
            self._watched.add(number)
        return found

    def find_lost(self, known: set[int]) -> bool:
        for number, process in list(self._host.by_number.items()):
            if number in known and number not in self._watched:
                self._end_orphan(number)
            elif number not in self._watched:
                self.lost[number] = process.identity
        return bool(self.lost)

    def end_lost(self) -> None:
        while self.lost:
            self._end_orphan(self.lost.popitem()[0])

    def stop(self, number: int, kill_after: float | None = None) -> None:
        process = self._host.by_number.get(number)
        if process is not None and not process.has_ended and number in self._watched:
            self._host.stop(process, self.kill_after if kill_after is None else kill_after)

    def collect_finished(self) -> list[tuple[int, RunResult]]:
        for number in [each for each in self._orphans if self._has_ended(each)]:
            self._orphans.remove(number)
            self.remove(number)
        ended = []
        for number in [each for each in self._watched if self._has_ended(each)]:
            self._watched.remove(number)
            process = self._host.by_number[number]
            seconds = process.ends_at - process.began_at
            ended.append((number, RunResult(process.exit_status, "", seconds, process.cause, process.cause.value)))
        return ended

    def remove(self, number: int) -> None:
        self._host.by_number.pop(number, None)

    def next_check_in(self) -> float | None:
        return self._monotonic() + 1.0 if self._orphans else None

    def has_result(self) -> bool:
        """Return True if a run has ended that `collect_finished` would return."""
        return any(self._has_ended(number) for number in self._watched)

    def _has_ended(self, number: int) -> bool:
        return self._host.by_number[number].has_ended

    def _end_orphan(self, number: int) -> None:
        process = self._host.by_number[number]
        if process.has_ended:
            self.remove(number)
        else:
            self._orphans.add(number)
            self._host.stop(process, self.kill_after)
