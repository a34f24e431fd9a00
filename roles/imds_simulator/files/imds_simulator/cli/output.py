# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Prints problems, prints lines without waiting for a slow reader, and ends quietly when the reader has gone."""

from __future__ import annotations

import contextlib
import os
import queue
import sys
import threading
import time
from typing import Callable, NoReturn, TextIO

from ..printable_text import printable

# the exit code that a shell shows for a program that SIGPIPE ended
CLOSED_OUTPUT = 141
_CONSOLE_SCRIPT = "imds-simulator"

_lines: queue.Queue[tuple[int, bytes]] = queue.Queue(maxsize=10_000)


def program_name() -> str:
    """Return ``imds-simulator`` if the program was started as the console script, else ``imds_simulator``."""
    return _CONSOLE_SCRIPT if os.path.basename(sys.argv[0]) == _CONSOLE_SCRIPT else "imds_simulator"


def print_problem(text: str) -> None:
    """Print ``text``, which may have names of a scenario, as a line on stderr after the name of the program."""
    print(f"{program_name()}: {printable(text)}", file=sys.stderr, flush=True)


def fail(problem: str, code: int = 2) -> NoReturn:
    """End the process with the exit code ``code`` after a message."""
    print_problem(problem)
    raise SystemExit(code)


def survive_closed_output(run: Callable[[], int]) -> int:
    """Return the exit code of ``run``, or CLOSED_OUTPUT if its output could not be written, as after ``| head``."""
    try:
        try:
            return run()
        finally:
            # Python writes the rest at its end, where an error would become a traceback
            if sys.stdout is not None:
                sys.stdout.flush()
    except BrokenPipeError:
        _discard_output()
        return CLOSED_OUTPUT


def _discard_output() -> None:
    """Let the buffered rest of the output go to /dev/null."""
    null = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            os.dup2(null, stream.fileno())
    os.close(null)


def start_writing() -> None:
    """Start the writer thread."""
    threading.Thread(target=_write_lines, daemon=True).start()


def finish_writing() -> None:
    """Wait at most 0.5 s for the writer thread to write the queued lines."""
    deadline = time.monotonic() + 0.5
    while _lines.unfinished_tasks and time.monotonic() < deadline:
        time.sleep(0.01)


def print_out(text: str) -> None:
    """Queue a line for stdout."""
    _queue_line(sys.stdout, text)


def print_err(text: str) -> None:
    """Queue a line for stderr."""
    _queue_line(sys.stderr, text)


def _queue_line(stream: TextIO | None, text: str) -> None:
    """Queue a line for the writer thread; drop it when the queue is full: a slow reader must not block."""
    if stream is None:
        # the process was started with a closed stdout (>&-)
        return
    with contextlib.suppress(queue.Full):
        _lines.put_nowait((stream.fileno(), text.encode(errors="backslashreplace") + b"\n"))


def _write_lines() -> None:
    while True:
        descriptor, line = _lines.get()
        while line:
            try:
                line = line[os.write(descriptor, line) :]
            except OSError:
                break
        _lines.task_done()


def discard(_text: str) -> None:
    """Print nothing."""
