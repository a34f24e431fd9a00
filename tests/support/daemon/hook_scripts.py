# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Hooks that are real executables and record their input in a file of marks."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

# bodies of hooks, which run between the first and the last mark
WORKS = ":"
FAILS = "exit 3"
# until it is released with an exit status; a test can wait for the mark
HANGS = 'say hang; read status <> "$MARKS.gate.$EVENT_STAGE.$me"; say end; exit "$status"'
# waits by a builtin when it says so: TERM is lost on a shell whose child has not become `sleep` yet
IGNORES_TERM = """trap 'say term' TERM; sleep 1000 & say hang; wait "$!"; while :; do sleep 1000; done"""
KEEPS_INPUT = 'cat > "$MARKS.input.$EVENT_STAGE.$me"; env > "$MARKS.environment.$EVENT_STAGE.$me"'
TALKS = 'echo "speaking of $EVENT_ID"; echo "and of trouble" >&2'

_SCRIPT = """#!/bin/sh
me=${0##*/}
say() {
    printf '%%s\\t%%s/%%s\\t%%s\\t%%s\\t%%s\\n' \\
        "$1" "$EVENT_STAGE" "$me" "$HOOK_SECONDS" "$EVENT_SECONDS_LEFT" "$$" >> "$MARKS"
}
say begin
%s
say end
"""


class Mark(NamedTuple):
    """One line of the marks; ``what``: begin, hang, term or end; ``hook``: STAGE/NAME."""

    what: str
    hook: str
    hook_seconds: int
    seconds_left: int
    pid: int


def write_program(path: Path, text: str, mode: int = 0o755) -> Path:
    """Write an executable file, in folders that are made."""
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)
    return path


def write_hook(directory: Path, hook: str, body: str = WORKS) -> Path:
    """Write the executable STAGE/NAME, which makes marks."""
    return write_program(directory / hook, _SCRIPT % body)


def read_marks(path: Path) -> list[Mark]:
    """Return all marks in order of time."""
    if not path.exists():
        return []
    marks = []
    for line in path.read_text().split("\n")[:-1]:
        what, hook, hook_seconds, seconds_left, pid = line.split("\t")
        # an event without NotBefore has no seconds left
        marks.append(Mark(what, hook, int(hook_seconds), int(seconds_left or 0), int(pid)))
    return marks


def is_alive(pid: int) -> bool:
    """Return True if a process runs and is not a zombie."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except OSError:
        return False


def processes_with(word: str, where: str) -> list[int]:
    """Return processes whose command line or environment (``where``) contains the word."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            try:
                data = Path("/proc", name, where).read_bytes()
            except OSError:
                continue
            if word.encode() in data:
                found.append(int(name))
    return found
