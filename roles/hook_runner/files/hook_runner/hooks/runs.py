# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Starts and ends hook runs, takes over the runs of an earlier daemon, and collects results."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import time
from typing import Callable, NamedTuple

from hook_runner.hooks import units
from hook_runner.hooks.children import ChildRun
from hook_runner.hooks.one_run import TOO_LONG, Run, RunOrder, RunResult
from hook_runner.hooks.systemd import Stopping, Systemd, UnitRun
from hook_runner.records import Cause

RUN = "/run"

# seconds between two looks at a run whose end the kernel reports, and at one whose end it does not report
CHECK_INTERVAL, ASKING_INTERVAL = 10.0, 0.5
# least seconds between two looks at the runs; poll(2) must not end before
AT_ONCE = 0.005
# seconds between two KILL for a hook
KILL_INTERVAL = 1.0
# seconds without another start after systemd has refused one because it ends the daemon or the host; the daemon
# usually ends earlier
HOLD = 30.0
# bytes that the files of a unit need: systemd and this daemon keep them in /run
ROOM = 65536
# seconds between two checks whether a hook may begin, the longest wait for it, and the part of the hook's time that the
# wait is at most
ROOM_INTERVAL, ROOM_TIMEOUT, ROOM_PART = 1.0, 60.0, 0.25


class FoundUnit(NamedTuple):
    """The unit of a run that another process has started; ``memo`` is what that one noted about it, b"" if nothing."""

    name: str
    number: int
    memo: bytes


class HookRuns:
    """The hook runs of one host.

    Args:
        directory: the service's run directory.
        clock: monotonic seconds.
        systemd: runs each hook in a transient unit; None to run them as children of this process.
    """

    def __init__(
        self,
        directory: str,
        clock: Callable[[], float] = time.monotonic,
        systemd: Systemd | None = None,
    ) -> None:
        self._folder = os.path.join(directory, "runs")
        self._clock = clock
        self._systemd = systemd
        self._active: dict[int, Run] = {}
        self._ended: dict[int, Run] = {}
        # the processes that end units; each with the name of its unit if no hook may begin before the end of it
        self._ending: dict[subprocess.Popen[bytes], str] = {}
        self._ends = select.epoll()
        self._held_until = float("-inf")
        self._waits_since = float("inf")

    def obstacle(self, seconds: float | None) -> str | None:
        """Return why no hook should be started now, to complete a clause with "waits for"; None if it may start.

        `seconds` is the time that the next hook has; None if no hook waits. The hook waits for a part of it, at most
        ROOM_TIMEOUT. Then what still runs of units that no record has gets KILL; if /run is full, the hook may start,
        as a child of this process.
        """
        now = self._clock()
        if now < self._held_until:
            return "the next start of the daemon or the host, which systemd is ending"
        lost = list(filter(None, self._still_ending()))
        if self._systemd is None or (not lost and self._has_room()):
            self._waits_since = float("inf")
            return None
        reason = "the end of hooks that no record has" if lost else f"room in {RUN}"
        self._waits_since = float("inf") if seconds is None else min(now, self._waits_since)
        if seconds is None or now - self._waits_since < min(ROOM_TIMEOUT, seconds * ROOM_PART):
            return reason
        for unit in lost:
            self._systemd.signal(unit, signal.SIGKILL)
        return reason if lost else None

    def start_unit(self, order: RunOrder) -> bool:
        """Run a hook in a unit; return False if systemd does not run, or has no room.

        systemd ends the hook at its limit, also without the daemon.

        Raises:
            Stopping: the daemon or the host is to end; the hook has not run.
            OSError: the hook has not run.
        """
        if self._systemd is None or not self._has_room():
            return False
        files = {"input": order.input, "environment": units.environment_file(order.environment)}
        given = [self._path(order.number, kind) for kind in files]
        try:
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
            for kind, data in {**files, "memo": order.memo}.items():
                descriptor = os.open(self._path(order.number, kind), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
                with open(descriptor, "wb") as file:
                    file.write(data)
            name = self._systemd.start(order, *given)
        except OSError as error:
            had_room = self._has_room()  # with these files in it
            self._unlink(order.number)
            if isinstance(error, Stopping):
                self._held_until = self._clock() + HOLD
            elif not had_room:
                return False
            raise
        self._active[order.number] = UnitRun(self._systemd, name, self._ends, order.limit)
        return True

    def start_child(self, order: RunOrder) -> None:
        """Run a hook as a child of this process. Raises OSError if it has not run."""
        run = ChildRun.start(order, self._ends)
        run.ends_at = self._clock() + order.limit
        self._active[order.number] = run

    def find_units(self) -> list[FoundUnit]:
        """Return the units of hooks, by number, and remove the files of units that were never made.

        Raises OSError if systemd does not answer.
        """
        found = []
        for name in self._systemd.hook_units() if self._systemd else ():
            number, memo = units.number_of(name), b""
            if number is not None:
                with contextlib.suppress(OSError), open(self._path(number, "memo"), "rb") as file:
                    memo = file.read()
                found.append(FoundUnit(name, number, memo))
        known = {str(each.number) for each in found}
        with contextlib.suppress(OSError):  # no unit was ever made since the host started
            for name in os.listdir(self._folder):
                if name.partition(".")[0] not in known:
                    os.unlink(os.path.join(self._folder, name))
        return sorted(found, key=lambda each: each.number)

    def adopt(self, unit: FoundUnit, limit: float) -> None:
        """Watch the run of a unit; `limit` is that of its start. `collect_finished` returns its result."""
        if self._systemd is not None:
            self._active[unit.number] = UnitRun(self._systemd, unit.name, self._ends, limit)

    def end_unit(self, unit: FoundUnit) -> None:
        """End a unit that is not adopted."""
        if self._systemd is not None:
            self._ending[self._systemd.end(unit.name)] = unit.name
        self._unlink(unit.number)

    def stop(self, number: int, kill_after: float) -> None:
        """Send TERM to all processes of the hook now, and KILL after `kill_after` seconds.

        May be repeated: TERM is sent once, and the first KILL no later than before; `collect_finished` repeats it.
        """
        run = self._active.get(number)
        if run is None or run.is_killed:
            return
        if run.kill_at == float("inf"):
            run.signal(signal.SIGTERM)
        run.kill_at = min(run.kill_at, self._clock() + max(0.0, kill_after))

    def collect_finished(self) -> list[tuple[int, RunResult]]:
        """Return the runs that have ended since the last call, with their results. Sends each KILL that is due.

        The end of a hook that was to end is the end of all its processes.
        """
        has_ready = bool(self._ends.poll(0))
        ended = []
        for number, run in list(self._active.items()):
            now = self._clock()
            if now >= run.ends_at:
                self.stop(number, run.kill_after)
            if now >= run.kill_at:
                run.signal(signal.SIGKILL)
                run.kill_at, run.is_killed = now + KILL_INTERVAL, True
            if not has_ready and now < run.look_at:
                continue
            result = run.look()
            run.look_at = self._clock() + (CHECK_INTERVAL if run.descriptors else ASKING_INTERVAL)
            if result is None:
                continue
            if run.kill_at != float("inf"):
                run.signal(signal.SIGKILL)  # what the hook has left may not run until its result is recorded
            self._ended[number] = self._active.pop(number)
            if now >= run.ends_at and result.exit_status != 0:
                result = result._replace(cause=Cause.TIME_LIMIT, error=TOO_LONG)
            ended.append((number, result))
        return ended

    def remove_collected(self) -> None:
        """End what is left of the runs whose results were collected, and are recorded; forget these runs."""
        while self._ended:
            number, run = self._ended.popitem()
            if isinstance(run, UnitRun):
                self._ending[run.end()] = ""
            self._unlink(number)

    def fileno(self) -> int:
        """Return the descriptor for poll(2): readable when a run may have ended; then call `collect_finished`."""
        return self._ends.fileno()

    def next_check_in(self) -> float | None:
        """Return when to call `collect_finished` although `fileno` is not readable: monotonic seconds, or None."""
        now = self._clock()
        times = [self._held_until] if now < self._held_until else []
        if self._waits_since <= now or any(self._still_ending()):
            times.append(now + ROOM_INTERVAL)
        for run in self._active.values():
            # a child that gets TERM at its limit gets it once
            ends_at = run.ends_at if run.kill_at == float("inf") else run.kill_at
            times.append(max(now + AT_ONCE, min(run.look_at, run.kill_at, ends_at)))
        return min(times, default=None)

    def close(self, kill_after: float) -> None:
        """End the hooks that are children of this process, and wait for the end of units; hooks in units continue."""
        children = {number for number, run in self._active.items() if isinstance(run, ChildRun)}
        for number in children:
            self.stop(number, kill_after)
        until = self._clock() + kill_after + KILL_INTERVAL
        while (children.intersection(self._active) or self._still_ending()) and self._clock() < until:
            self.collect_finished()
            time.sleep(AT_ONCE)

    def _has_room(self) -> bool:
        """Return True if systemd and this daemon can write the files of a unit."""
        folder = os.path.dirname(self._folder)
        for path in (RUN, folder if os.path.isdir(folder) else RUN):
            space = os.statvfs(path)
            has_files = not space.f_files or space.f_favail > 1
            # for the daemon /run may be read-only, and its own folder in it is not
            is_read_only = path == folder and space.f_flag & os.ST_RDONLY
            if is_read_only or not has_files or space.f_bavail * space.f_frsize < ROOM:
                return False
        return True

    def _still_ending(self) -> list[str]:
        """Return the values of `_ending` for the processes that have not ended."""
        self._ending = {process: each for process, each in self._ending.items() if process.poll() is None}
        return list(self._ending.values())

    def _unlink(self, number: int) -> None:
        for kind in ("input", "environment", "memo"):
            with contextlib.suppress(OSError):
                os.unlink(self._path(number, kind))

    def _path(self, number: int, kind: str) -> str:
        return os.path.join(self._folder, f"{number}.{kind}")
