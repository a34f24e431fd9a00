# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Starts and ends hook runs, adopts the runs of an earlier daemon, and collects results.

Each run has a folder and a supervisor (supervisor.py). The supervisor holds a lock as long as it
lives; its process id is used only to kill the remaining processes of a run. The supervisor also
holds a pipe open, which wakes the daemon when the supervisor ends.
"""

from __future__ import annotations

import json
import marshal
import os
import pwd
import select
import shutil
import time
from collections.abc import Mapping
from typing import Callable, NamedTuple

from hook_runner.hooks import processes, run_identity, units
from hook_runner.hooks.run_identity import RunIdentity
from hook_runner.hooks.spawning import HostEnds, spawn_supervisor
from hook_runner.records import Cause

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

SUPERVISOR_LOST = "its supervisor was killed; the exit status is unknown"
# seconds that a supervisor may need after the time for KILL; then the daemon kills it and its hook
SUPERVISOR_GRACE = 3.0
# KILL attempts for the processes of a lost supervisor; then the run is reported anyway, because a
# process may hang in the kernel
KILL_ATTEMPTS = 20
# seconds that a supervisor may try to write the result after the hook has ended
WRITE_TIMEOUT = 600.0
# seconds between two checks of a run whose end is near, and of a run whose end cannot be awaited
SHORT_CHECK_INTERVAL, CHECK_INTERVAL = 0.1, 1.0
# seconds without another start after systemd has refused one because the host goes down; the
# daemon usually ends earlier
HOLD = 30.0
# bytes that are reserved for a result with little output (supervisor.LITTLE_OUTPUT), in case the
# file system becomes full
RESERVED = 4096


class RunResult(NamedTuple):
    """The result of a run.

    Attributes:
        exit_status: exit status, or minus the number of the signal that ended it; None if it was
            never started, or if the status is unknown.
        output: the last part of its output, without control characters other than newline and tab.
        seconds: its duration.
        cause: NOT_STARTED, TIME_LIMIT, HOST_SHUTDOWN, ENDED_EARLY or SUPERVISOR_LOST; NONE if the
            hook ended by itself.
        error: the same as a text; "" for NONE.
    """

    exit_status: int | None
    output: str
    seconds: float
    cause: Cause
    error: str


class _ActiveRun:
    """The state of a run whose result has not been returned yet.

    Attributes:
        end_by: monotonic seconds after which the supervisor is killed too; None while the run's end
            has not been requested.
        kill_after: requested seconds between TERM and KILL.
        attempts: KILL attempts for the processes of a lost supervisor.
        orphan: whether no event needs the result.
        alive: reading end of the supervisor's pipe; -1 without one, or when it has reached its end.
        is_ending: whether the pipe has reached its end.
        has_begun: whether the supervisor has written its process id.
    """

    __slots__ = ("alive", "attempts", "end_by", "has_begun", "is_ending", "kill_after", "orphan")

    def __init__(self, orphan: bool = False) -> None:
        self.end_by: float | None = None
        self.kill_after: float | None = None
        self.attempts = 0
        self.orphan = orphan
        self.alive = -1
        self.is_ending = False
        self.has_begun = False


class HookRuns:
    """The hook runs below one folder.

    Args:
        directory: the service's run directory.
        environment: variables for all hooks.
        kill_after: seconds between TERM and KILL.
        clock: monotonic seconds.
        in_units: whether each supervisor gets a transient unit of systemd; otherwise it is a child
            of this process.
        log: descriptor that gets the hooks' output; None for standard error, or for the journal
            where there are units.

    `environment` and `kill_after` may be replaced; the new values apply to later runs.
    """

    def __init__(
        self,
        directory: str,
        environment: Mapping[str, str],
        kill_after: float,
        clock: Callable[[], float] = time.monotonic,
        in_units: bool = False,
        log: int | None = None,
    ) -> None:
        self._in_units, self._log = in_units, log
        self._folder = os.path.join(directory, "runs")
        self.environment = environment
        self.kill_after = kill_after
        self._clock = clock
        self._active: dict[int, _ActiveRun] = {}
        self._lost: dict[int, RunIdentity] = {}
        self._children: set[int] = set()
        self._ends = select.epoll()
        self._held_until = float("-inf")

    def start(
        self,
        step_id: int,
        path: str,
        input: bytes,
        variables: Mapping[str, str],
        limit: float,
        identity: RunIdentity | None = None,
        limits: Mapping[str, int] | None = None,
    ) -> None:
        """Run a hook that gets `input` on stdin and `variables`, in addition to `environment`.

        The supervisor ends it after `limit` seconds, even without a daemon. By `identity` a daemon finds a run
        that no record has. `limits` are properties of the hook's unit, as `hook_limits.read_limits` returns
        them; without units they have no effect.

        Raises:
            HostEnds: the host goes down; the hook has not run.
            OSError: the hook has not run.
        """
        self.discard(step_id)
        folder = self._path(step_id)
        os.makedirs(self._folder, mode=0o700, exist_ok=True)
        os.mkdir(folder, 0o700)
        try:
            order = (
                os.fsencode(path),
                self._environment(variables),
                float(limit),
                float(self.kill_after),
            )
            _write(
                os.path.join(folder, "order"), marshal.dumps(order, 4)
            )  # the format that every Python since 3.4 reads
            _write(os.path.join(folder, "input"), input)
            _write(os.path.join(folder, "result.new"), bytes(RESERVED))
            if identity is not None:
                _write(os.path.join(folder, run_identity.FILE), run_identity.as_bytes(identity))
            os.mkfifo(os.path.join(folder, "requests"), 0o600)
            os.mkfifo(os.path.join(folder, "alive"), 0o600)
            self._watch(step_id, _ActiveRun())
            self._launch(folder, step_id, path, variables.get("EVENT_ID", ""), limit, limits or {})
        except OSError as error:
            self.remove(step_id)
            if isinstance(error, HostEnds):
                self._held_until = self._clock() + HOLD
            raise

    def adopt(self, step_id: int) -> bool:
        """Watch a run of an earlier daemon; return False if it neither lives nor has a result.

        `collect_finished` returns its result.
        """
        folder = self._path(step_id)
        found = (
            processes.is_supervised(folder)
            or os.path.exists(os.path.join(folder, "result"))
            or processes.supervisor_pid(folder) is not None
        )
        if found and step_id not in self._active:
            self._watch(step_id, _ActiveRun())
        return found

    def lost(self, key: str) -> list[tuple[int, RunIdentity]]:
        """Return the runs for an event that no record had at the start, sorted by number."""
        return sorted((number, identity) for number, identity in self._lost.items() if identity.key == key)

    def is_lost(self, hook: str) -> bool:
        """Return True if a run of `lost` is one of a hook of this name."""
        return any(identity.hook == hook for identity in self._lost.values())

    def claim(self, step_id: int) -> bool:
        """Adopt a run of `lost`; return the value of `adopt`."""
        self._lost.pop(step_id, None)
        return self.adopt(step_id)

    def end_lost(self) -> None:
        """End and remove the runs of `lost` that no event has claimed."""
        while self._lost:
            self._end_orphan(self._lost.popitem()[0])

    def stop(self, step_id: int, kill_after: float | None = None) -> None:
        """Send TERM to the hook's process group now, and KILL after `kill_after` seconds. May be repeated."""
        run = self._active.get(step_id)
        if run is None:
            return
        seconds = self.kill_after if kill_after is None else max(0.0, kill_after)
        run.kill_after = seconds if run.kill_after is None else min(seconds, run.kill_after)
        end_by = self._clock() + seconds + SUPERVISOR_GRACE
        run.end_by = end_by if run.end_by is None else min(end_by, run.end_by)
        self._request_stop(step_id, run.kill_after)

    def collect_finished(self) -> list[tuple[int, RunResult]]:
        """Return the runs that have ended since the last call, with their results."""
        self._reap()
        self._note_ends()
        ended = []
        for step_id, run in list(self._active.items()):
            result = self._result(step_id, run)
            if result is None:
                continue
            self._unwatch(step_id)
            if run.orphan:
                self.remove(step_id)
            else:
                ended.append((step_id, result))
        return ended

    def is_held(self) -> bool:
        """Return True if no hook should be started now because the host goes down."""
        return self._clock() < self._held_until

    def has_orphans(self) -> bool:
        """Return True if a run without an event is still being ended."""
        return any(run.orphan for run in self._active.values())

    def remove(self, step_id: int) -> None:
        """Remove the folder of a run, after its result has been recorded."""
        self._unwatch(step_id)
        shutil.rmtree(self._path(step_id), ignore_errors=True)

    def fileno(self) -> int:
        """Return the descriptor for poll(2): readable when a run has ended; then call `collect_finished`."""
        return self._ends.fileno()

    def next_check_in(self) -> float | None:
        """Return when to call `collect_finished` although `fileno` is not readable: monotonic seconds, or None."""
        now = self._clock()
        times = [self._check(step_id, run, now) for step_id, run in self._active.items()]
        if self.is_held():
            times.append(self._held_until)
        return min((at for at in times if at is not None), default=None)

    def stop_orphans(self, known_ids: set[int]) -> bool:
        """Examine the folders of unknown runs: adopt those with an identity as `lost`, and end all others.

        Returns whether there are lost ones.
        """
        try:
            names = os.listdir(self._folder)
        except OSError:
            return False
        for name in names:
            if not name.isdecimal() or int(name) in known_ids or int(name) in self._active:
                continue
            folder = self._path(int(name))
            identity = run_identity.read_identity(folder)
            if identity is not None and (
                processes.is_supervised(folder) or processes.supervisor_pid(folder) is not None
            ):
                self._lost[int(name)] = identity
            else:
                self._end_orphan(int(name))
        return bool(self._lost)

    def discard(self, step_id: int) -> None:
        """Kill the processes of the run with this number, and remove its folder."""
        folder = self._path(step_id)
        if not os.path.lexists(folder):
            return
        for _attempt in range(KILL_ATTEMPTS):
            if not processes.kill_session(folder):
                break
            time.sleep(0.01)
        self.remove(step_id)

    def _launch(
        self, folder: str, step_id: int, path: str, event_id: str, limit: float, limits: Mapping[str, int]
    ) -> None:
        """Start the supervisor. Raises OSError."""
        if not self._in_units:
            self._children.add(spawn_supervisor(folder, 2 if self._log is None else self._log))
            return
        stage, hook = path.split("/")[-2:]
        units.start_unit(
            folder, units.UnitRequest(stage, hook, step_id, event_id, limit, self.kill_after, limits, self._log)
        )

    def _end_orphan(self, step_id: int) -> None:
        if not processes.is_supervised(self._path(step_id)):
            self.discard(step_id)
            return
        run = _ActiveRun(orphan=True)
        run.end_by = self._clock() + self.kill_after + SUPERVISOR_GRACE
        self._watch(step_id, run)
        self._request_stop(step_id, self.kill_after)

    def _watch(self, step_id: int, run: _ActiveRun) -> None:
        self._active[step_id] = run
        try:
            run.alive = os.open(os.path.join(self._path(step_id), "alive"), os.O_RDONLY | os.O_NONBLOCK)
            self._ends.register(run.alive, select.EPOLLHUP)
        except OSError:
            pass  # the pipe was removed; `next_check_in` polls the run

    def _unwatch(self, step_id: int) -> None:
        run = self._active.pop(step_id, None)
        if run is not None:
            self._close(run)

    def _close(self, run: _ActiveRun) -> None:
        if run.alive >= 0:
            os.close(run.alive)  # which removes it from `_ends`
            run.alive = -1

    def _note_ends(self) -> None:
        ended = {descriptor for descriptor, _event in self._ends.poll(0)}
        for run in self._active.values():
            if run.alive in ended:
                run.is_ending = True
                self._close(run)  # an open pipe would wake the daemon continually until the result is there

    def _check(self, step_id: int, run: _ActiveRun, now: float) -> float | None:
        """Return when to check a run that may have ended unnoticed: monotonic seconds, or None.

        1. A run whose pipe has reached its end, or whose processes are being killed, is checked after
           SHORT_CHECK_INTERVAL.
        2. A run without a pipe, or whose supervisor has not begun, is checked after CHECK_INTERVAL.
        3. The pipe of any other run wakes the daemon. Such a run is checked only if its end was requested: when
           its supervisor has to be killed, and after CHECK_INTERVAL from then on.
        """
        if run.is_ending or run.attempts:
            return now + SHORT_CHECK_INTERVAL
        if not run.has_begun:
            run.has_begun = processes.supervisor_pid(self._path(step_id)) is not None
        if run.alive < 0 or not run.has_begun:
            return now + CHECK_INTERVAL
        if run.end_by is None:
            return None
        return run.end_by if run.end_by > now else now + CHECK_INTERVAL

    def _path(self, step_id: int) -> str:
        return os.path.join(self._folder, f"{step_id}")

    def _environment(self, variables: Mapping[str, str]) -> dict[bytes, bytes]:
        try:
            home = pwd.getpwuid(os.geteuid()).pw_dir
        except KeyError:
            home = "/"
        merged = {"PATH": PATH, "LANG": "C.UTF-8", "HOME": home, **self.environment, **variables}
        return {os.fsencode(name): value.encode("utf-8", "backslashreplace") for name, value in merged.items()}

    def _request_stop(self, step_id: int, kill_after: float) -> None:
        """Ask the supervisor to end its hook. `collect_finished` handles a supervisor that is dead or stuck."""
        try:
            pipe = os.open(os.path.join(self._path(step_id), "requests"), os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            processes.end_supervisor_without_folder(self._path(step_id))
            return
        try:
            os.write(pipe, b"%.3f\n" % kill_after)
        except OSError:
            pass
        finally:
            os.close(pipe)

    def _result(self, step_id: int, run: _ActiveRun) -> RunResult | None:
        """Return the result of a run; None while it has none.

        1. The supervisor has written it. If it cannot be read, the cause is SUPERVISOR_LOST.
        2. There is none while the supervisor lives and has time.
        3. There is none while the supervisor lives, the hook has ended and the result is being written. An
           orphan's result is not awaited.
        4. Otherwise the processes of the run are killed. When none is left, or after KILL_ATTEMPTS calls, the
           cause is SUPERVISOR_LOST.
        """
        folder = self._path(step_id)
        lives = processes.is_supervised(folder)  # checked first: a supervisor writes its result before it ends
        try:
            with open(os.path.join(folder, "result"), encoding="ascii") as file:
                return _as_result(json.load(file))
        except FileNotFoundError:
            pass
        except (OSError, ValueError) as error:
            return RunResult(None, "", 0.0, Cause.SUPERVISOR_LOST, f"its supervisor left an unreadable result: {error}")
        if lives and (run.end_by is None or self._clock() < run.end_by):
            return None
        if lives and not run.orphan and self._is_written_soon(folder, run):
            return None
        run.attempts += 1
        if processes.kill_session(folder) and run.attempts < KILL_ATTEMPTS:
            return None
        return RunResult(None, "", 0.0, Cause.SUPERVISOR_LOST, SUPERVISOR_LOST)

    def _is_written_soon(self, folder: str, run: _ActiveRun) -> bool:
        """Return True if the hook has ended, and its supervisor is still trying to write the result."""
        return (
            run.end_by is not None and self._clock() < run.end_by + WRITE_TIMEOUT and processes.hook_has_ended(folder)
        )

    def _reap(self) -> None:
        for child in list(self._children):
            try:
                if os.waitpid(child, os.WNOHANG)[0] == child:
                    self._children.discard(child)
            except ChildProcessError:
                self._children.discard(child)


def _as_result(data: object) -> RunResult:
    if not isinstance(data, dict):
        raise ValueError("not a JSON object")
    status, output, seconds, error = (data.get(name) for name in ("exit_status", "output", "seconds", "error"))
    if (
        not isinstance(status, (int, type(None)))
        or not isinstance(seconds, (int, float))
        or (status is None and not error)
    ):
        raise ValueError("a member is missing or has another type")
    return RunResult(status, str(output), float(seconds), Cause(data.get("cause")), str(error))


def _write(path: str, data: bytes) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(data)
