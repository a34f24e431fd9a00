# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A job of a minion in a process of its own, as Salt starts one: a fork, or on Windows a new Python."""

from __future__ import annotations

import multiprocessing
import sys
from pathlib import Path
from typing import Any

import psutil

from support.salt.steps_minion import StepsMinion
from support.wait import wait_until

if sys.platform == "win32":
    CONTEXT = multiprocessing.get_context("spawn")
else:
    CONTEXT = multiprocessing.get_context("fork")


class JobProcess:
    """A call of a function of the minion in another process; the block ends after it."""

    def __init__(self, minion: StepsMinion, function: str, *arguments: Any) -> None:
        self._read_end, write_end = CONTEXT.Pipe(duplex=False)
        self._process = CONTEXT.Process(target=_answer, args=(write_end, minion, function, arguments))
        self._process.start()
        write_end.close()

    def outcome(self) -> str:
        """Wait for the end of the job, and return its outcome."""
        assert self._read_end.poll(60), "the job has not ended"
        outcome: str = self._read_end.recv()["outcome"]
        return outcome

    def kill(self) -> None:
        """End the process at once; its own processes get no signal."""
        self._process.kill()

    def __enter__(self) -> JobProcess:
        return self

    def __exit__(self, *_error: object) -> None:
        self._process.join(60)
        self._read_end.close()


def is_running(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def pid_in(file: Path) -> int:
    """Wait for the id of a process in a file, and return it."""
    wait_until(lambda: file.exists() and file.read_text().strip(), f"the id of a process in {file}")
    return int(file.read_text())


def _answer(pipe: Any, minion: StepsMinion, function: str, arguments: tuple[Any, ...]) -> None:
    pipe.send(minion.call(function, *arguments))
