# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Prints lines without waiting for a slow reader."""

from __future__ import annotations

import contextlib
import os
import queue
import sys
import threading
import time
from typing import TextIO

_lines: queue.Queue[tuple[int, bytes]] = queue.Queue(maxsize=10_000)


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
    try:
        descriptor = stream.fileno()
    except OSError:
        print(text, file=stream, flush=True)
        return
    with contextlib.suppress(queue.Full):
        _lines.put_nowait((descriptor, text.encode(errors="backslashreplace") + b"\n"))


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
