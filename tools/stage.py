# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A stage of the tests, the job that runs it, and its outcome."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from tools.environment import Environment

TERM_GRACE = 2.0  # seconds


@dataclass(frozen=True)
class Outcome:
    """Counts of tests, notes about tests that did not run, and the names of failed tests with reasons."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    notes: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()

    @classmethod
    def from_exit_status(cls, exit_status: int, name: str = "") -> Outcome:
        """Return the outcome of a check that reports only its exit status; `name` is shown if it failed."""
        return cls(failed=1, failures=(name,) if name else ()) if exit_status else cls(passed=1)

    def __add__(self, other: Outcome) -> Outcome:
        notes = tuple(dict.fromkeys(self.notes + other.notes))
        return Outcome(
            self.passed + other.passed,
            self.failed + other.failed,
            self.skipped + other.skipped,
            notes,
            self.failures + other.failures,
        )


class Skip(Exception):
    """A stage cannot run here. The text gives the reason and appears in the summary."""


class StageFailed(Exception):
    """A stage cannot go on."""


@dataclass
class Job:
    """One running stage: its environment, and the log that takes the output of its commands.

    `interrupted` is set when the whole run is ended; the job starts no command then.
    """

    environment: Environment
    log: IO[str]
    interrupted: threading.Event = field(default_factory=threading.Event)
    children: set[int] = field(default_factory=set)

    def write(self, text: str) -> None:
        """Write one line into the log."""
        self.log.write(f"{text}\n")
        self.log.flush()

    def run(
        self, *command: str | Path, cwd: Path | None = None, env: Mapping[str, str] | None = None, limit: float = 1200
    ) -> int:
        """Run a command for at most `limit` seconds, and return its exit status.

        The command gets a process group of its own, which ends with it.

        Raises:
            StageFailed: the run was interrupted before.
        """
        if self.interrupted.is_set():
            raise StageFailed("interrupted")
        self.write("+ " + " ".join(map(str, command)))
        child = subprocess.Popen(
            [str(argument) for argument in command],
            cwd=cwd or self.environment.repository,
            env={**self.environment.variables, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self.children.add(child.pid)
        try:
            return child.wait(limit)
        except subprocess.TimeoutExpired:
            self.write(f"ended after {limit:.0f} s")
            return 124
        finally:
            end_group(child.pid)
            child.wait()
            self.children.discard(child.pid)

    def run_or_fail(self, *command: str | Path) -> None:
        """Run a command without which the stage cannot go on.

        Raises:
            StageFailed: the exit status is not 0.
        """
        if self.run(*command):
            raise StageFailed(" ".join(map(str, command)))

    def terminate(self) -> None:
        """Send SIGTERM to all commands of the job; the threads that wait for them see their end."""
        for leader in list(self.children):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(leader, signal.SIGTERM)

    def output(self) -> str:
        """Return the log."""
        self.log.flush()
        return Path(self.log.name).read_text(errors="replace")


def end_group(leader: int) -> None:
    """End a process group: SIGTERM, and SIGKILL after `TERM_GRACE`."""
    try:
        os.killpg(leader, signal.SIGTERM)
    except ProcessLookupError:
        return
    deadline = time.monotonic() + TERM_GRACE
    while time.monotonic() < deadline:
        time.sleep(0.1)
        try:
            os.killpg(leader, 0)
        except ProcessLookupError:
            return
    with contextlib.suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)


@dataclass(frozen=True)
class Stage:
    """A stage of the tests.

    `run` runs all of it. `short`, if there is one, runs the part that `make test` runs.
    """

    name: str
    summary: str
    run: Callable[[Job], Outcome]
    short: Callable[[Job], Outcome] | None = None
