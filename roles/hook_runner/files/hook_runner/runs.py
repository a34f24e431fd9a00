# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Hook runs as the daemon sees them: starts, finds again after its own restart, ends and collects them.

Each run has a folder and a keeper (keeper.py). A lock that only the living keeper holds tells that it lives; its process id
serves for nothing but ending what it left behind.
"""

from __future__ import annotations

import json
import marshal
import os
import pwd
import shutil
import time
from collections.abc import Mapping
from typing import Callable, NamedTuple, Optional

from hook_runner import sessions
from hook_runner.spawning import spawn_keeper

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

KEEPER_GONE = "its keeper was killed, so that nobody knows how it ended"
# how long a keeper that was told to end its hook may take beyond the time for KILL, before both are ended from here
PATIENCE = 3.0
# how often what a dead keeper left is killed before its result is told all the same: something may hang in the kernel
ATTEMPTS = 20


class Result(NamedTuple):
    """How a run ended.

    Attributes:
        exit_status: exit status, minus the signal number where a signal ended it; None where it was never started, or nobody knows.
        output: the last part of what it printed, without control characters other than newline and tab.
        seconds: how long it took.
        error: why it could not be started, or was ended early, or is not known; else "".
    """

    exit_status: Optional[int]
    output: str
    seconds: float
    error: str


class _Run:
    """What this process knows of a run that has not been told yet."""

    __slots__ = ("end_by", "kill_after", "attempts", "stray")

    def __init__(self, stray: bool = False) -> None:
        self.end_by: Optional[float] = None
        self.kill_after: Optional[float] = None
        self.attempts = 0
        self.stray = stray


class Runs:
    """The hook runs below one folder.

    Args:
        directory: the service's run directory.
        environment: variables that every hook gets besides its own.
        tail: bytes that are kept of each hook's output.
        kill_after: seconds between TERM and KILL.
        clock: monotonic seconds.

    `environment`, `tail` and `kill_after` may be replaced; they hold for later runs.
    """

    def __init__(
        self,
        directory: str,
        environment: Mapping[str, str],
        tail: int,
        kill_after: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folder = os.path.join(directory, "runs")
        self.environment = environment
        self.tail = tail
        self.kill_after = kill_after
        self._clock = clock
        self._active: dict[int, _Run] = {}
        self._children: set[int] = set()

    def start(self, step_id: int, path: str, input: bytes, variables: Mapping[str, str], limit: float) -> None:
        """Run a hook that gets `input` on stdin and `variables`. Raises OSError where it cannot be tried at all.

        limit: seconds after which the keeper ends it even if no daemon lives.
        """
        self.clean_one(step_id)
        folder = self._path(step_id)
        os.makedirs(self._folder, mode=0o700, exist_ok=True)
        os.mkdir(folder, 0o700)
        try:
            order = (os.fsencode(path), self._environment(variables), float(limit), float(self.kill_after), int(self.tail))
            _write(os.path.join(folder, "order"), marshal.dumps(order, 4))  # as every Python since 3.4 reads it
            _write(os.path.join(folder, "input"), input)
            os.mkfifo(os.path.join(folder, "requests"), 0o600)
            self._children.add(spawn_keeper(folder))
        except OSError:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        self._active[step_id] = _Run()

    def adopt(self, step_id: int) -> bool:
        """Whether a run of an earlier daemon lives or has left its result, so that `poll` will tell of it."""
        folder = self._path(step_id)
        found = sessions.is_locked(folder) or os.path.exists(os.path.join(folder, "result")) or sessions.keeper_of(folder) is not None
        if found:
            self._active.setdefault(step_id, _Run())
        return found

    def stop(self, step_id: int, kill_after: Optional[float] = None) -> None:
        """TERM to the hook's whole group now, KILL after `kill_after` seconds. Harmless to repeat."""
        run = self._active.get(step_id)
        if run is None:
            return
        seconds = self.kill_after if kill_after is None else max(0.0, kill_after)
        run.kill_after = seconds if run.kill_after is None else min(seconds, run.kill_after)
        end_by = self._clock() + seconds + PATIENCE
        run.end_by = end_by if run.end_by is None else min(end_by, run.end_by)
        self._ask_to_end(step_id, run.kill_after)

    def poll(self) -> list[tuple[int, Result]]:
        """The runs that have ended since the last call."""
        self._reap()
        ended = []
        for step_id, run in list(self._active.items()):
            result = self._result(step_id, run)
            if result is None:
                continue
            del self._active[step_id]
            if run.stray:
                self.forget(step_id)
            else:
                ended.append((step_id, result))
        return ended

    def has_strays(self) -> bool:
        """Whether a run that belongs to nobody is still being ended."""
        return any(run.stray for run in self._active.values())

    def forget(self, step_id: int) -> None:
        """Remove what is left of a run, after its result has been written down."""
        self._active.pop(step_id, None)
        shutil.rmtree(self._path(step_id), ignore_errors=True)

    def clean(self, known_ids: set[int]) -> None:
        """End and remove the runs that belong to nobody: those of a journal that was lost."""
        try:
            names = os.listdir(self._folder)
        except OSError:
            return
        for name in names:
            if not name.isdecimal() or int(name) in known_ids or int(name) in self._active:
                continue
            if sessions.is_locked(self._path(int(name))):
                self._active[int(name)] = _Run(stray=True)
                run = self._active[int(name)]
                run.end_by = self._clock() + self.kill_after + PATIENCE
                self._ask_to_end(int(name), self.kill_after)
            else:
                self.clean_one(int(name))

    def clean_one(self, step_id: int) -> None:
        """End what runs in the folder of this number at once, and remove the folder."""
        folder = self._path(step_id)
        if not os.path.lexists(folder):
            return
        for _attempt in range(ATTEMPTS):
            if not sessions.kill_all(folder):
                break
            time.sleep(0.01)
        self.forget(step_id)

    def _path(self, step_id: int) -> str:
        return os.path.join(self._folder, "%d" % step_id)

    def _environment(self, variables: Mapping[str, str]) -> dict[bytes, bytes]:
        try:
            home = pwd.getpwuid(os.geteuid()).pw_dir
        except KeyError:
            home = "/"
        merged = {"PATH": PATH, "LANG": "C.UTF-8", "HOME": home, **self.environment, **variables}
        return {os.fsencode(name): value.encode("utf-8", "backslashreplace") for name, value in merged.items()}

    def _ask_to_end(self, step_id: int, kill_after: float) -> None:
        """Tell the keeper; where that fails it is dead or stuck, and `poll` sees to it."""
        try:
            pipe = os.open(os.path.join(self._path(step_id), "requests"), os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            sessions.end_keeper_without_folder(self._path(step_id))
            return
        try:
            os.write(pipe, b"%.3f\n" % kill_after)
        except OSError:
            pass
        finally:
            os.close(pipe)

    def _result(self, step_id: int, run: _Run) -> Optional[Result]:
        folder = self._path(step_id)
        lives = sessions.is_locked(folder)  # asked first: a keeper leaves its result before it goes
        try:
            with open(os.path.join(folder, "result"), encoding="ascii") as file:
                return _as_result(json.load(file))
        except FileNotFoundError:
            pass
        except (OSError, ValueError) as error:
            return Result(None, "", 0.0, "its keeper left a result that cannot be read: %s" % error)
        if lives and (run.end_by is None or self._clock() < run.end_by):
            return None
        run.attempts += 1
        if sessions.kill_all(folder) and run.attempts < ATTEMPTS:
            return None
        return Result(None, "", 0.0, KEEPER_GONE)

    def _reap(self) -> None:
        for child in list(self._children):
            try:
                if os.waitpid(child, os.WNOHANG)[0] == child:
                    self._children.discard(child)
            except ChildProcessError:
                self._children.discard(child)


def _as_result(data: object) -> Result:
    if not isinstance(data, dict):
        raise ValueError("it is no object")
    status, output, seconds, error = (data.get(name) for name in ("exit_status", "output", "seconds", "error"))
    if not isinstance(status, (int, type(None))) or not isinstance(seconds, (int, float)) or (status is None and not error):
        raise ValueError("it lacks what a result has")
    return Result(status, str(output), float(seconds), str(error))


def _write(path: str, data: bytes) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(data)
