# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A job of a minion in a process of its own, as Salt starts one: a fork, or on Windows a new Python."""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    # on Windows the process imports this file, and needs none of the modules for tests
    from support.salt.loaded import Minion

if sys.platform == "win32":
    CONTEXT = multiprocessing.get_context("spawn")
else:
    CONTEXT = multiprocessing.get_context("fork")


class JobProcess:
    """A call of one of the functions ``azure_events`` in another process."""

    def __init__(self, minion: Minion, function: str, *arguments: Any) -> None:
        self._read_end, write_end = CONTEXT.Pipe(duplex=False)
        self._process = CONTEXT.Process(target=_answer, args=(write_end, minion.opts, function, arguments))
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

    def close(self) -> None:
        """Wait for the end of the process."""
        self._process.join(60)
        self._read_end.close()


@contextmanager
def job(minion: Minion, function: str, *arguments: Any) -> Iterator[JobProcess]:
    """Run a job of the minion during the block."""
    process = JobProcess(minion, function, *arguments)
    yield process
    process.close()


def _answer(pipe: Any, opts: dict[str, Any], function: str, arguments: tuple[Any, ...]) -> None:
    import salt.loader

    pipe.send(salt.loader.minion_mods(opts, context={})["azure_events." + function](*arguments))
