# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""What a stage of the tests is, and what it hands back."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from tools.environment import Workshop


@dataclass(frozen=True)
class Outcome:
    """Counts of tests, what a reader has to know about those that did not run, and which failed: their names, each with its reason."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    notes: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()

    @classmethod
    def of(cls, exit_status: int) -> Outcome:
        """A check that only knows yes or no."""
        return cls(failed=1) if exit_status else cls(passed=1)

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
    """Raised by a stage that cannot run here; its text says why, in words for the summary."""


class StageFailed(Exception):
    """Raised by a stage that cannot go on."""


@dataclass
class Job:
    """One running stage: the workshop, and a log that takes what its commands print."""

    workshop: Workshop
    log: IO[str]
    children: set[int] = field(default_factory=set)
    stopped: bool = False

    def say(self, text: str) -> None:
        self.log.write(f"{text}\n")
        self.log.flush()

    def run(
        self, *command: str | Path, cwd: Path | None = None, env: Mapping[str, str] | None = None, limit: float = 1200
    ) -> int:
        """Run a command to its end, or to `limit` seconds; its process group does not outlive it."""
        if self.stopped:
            raise StageFailed("interrupted")
        self.say("+ " + " ".join(map(str, command)))
        child = subprocess.Popen(
            [str(word) for word in command],
            cwd=cwd or self.workshop.repository,
            env={**self.workshop.environment, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self.children.add(child.pid)
        try:
            return child.wait(limit)
        except subprocess.TimeoutExpired:
            self.say(f"stopped after {limit:.0f} s")
            return 124
        finally:
            end_group(child.pid)
            child.wait()
            self.children.discard(child.pid)

    def must(self, *command: str | Path) -> None:
        """Run a command without which the stage cannot go on."""
        if self.run(*command):
            raise StageFailed(" ".join(map(str, command)))

    def stop(self) -> None:
        self.stopped = True
        for pid in list(self.children):
            end_group(pid)

    def output(self) -> str:
        self.log.flush()
        return Path(self.log.name).read_text(errors="replace")


def end_group(leader: int) -> None:
    try:
        os.killpg(leader, signal.SIGTERM)
    except ProcessLookupError:
        return
    for _pause in range(20):
        time.sleep(0.1)
        try:
            os.killpg(leader, 0)
        except ProcessLookupError:
            return
    with contextlib.suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)


@dataclass(frozen=True)
class Stage:
    name: str
    promise: str
    run: Callable[[Job], Outcome]
