# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Logs each stage of an event to the journal of systemd and to a file of JSON lines."""

from __future__ import annotations

import json
import os
import socket
import stat
import time
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Callable

from ready_hooks.core import arguments, durable_file, report
from ready_hooks.core.arguments import Option
from ready_hooks.core.errors import HookError, UsageError
from ready_hooks.core.hook import EMERGENCY, ERROR, INFO, STAGES, Finding, ReadyHook, Run
from ready_hooks.core.occurrences import Occurrence, Occurrences
from ready_hooks.core.ownership import opened_folder

JOURNAL = "/run/systemd/journal/socket"
MESSAGE_ID = "9f9b66d515a04b21a0a79c16c55fecfa"
_NOTICE, _WARNING = 5, 4
_JOURNAL_SECONDS = 5.0
# each reader of the file can lock it, and must not delay the preparation
_LOCK_SECONDS = 5.0
_MODE = 0o640
# a file that logrotate renames between open and lock is opened again
_MOST_OPENED = 10


class Log(ReadyHook):
    """Log events. It never fails: a line that cannot be written is a warning."""

    name = "log"
    summary = "Logs each stage of an event to the journal of systemd and to a file of JSON lines."
    options = (
        Option("journal", arguments.boolean, "log to the journal of systemd", True),
        Option("identifier", arguments.text, "SYSLOG_IDENTIFIER of the lines in the journal", "azure-event"),
        Option("file", arguments.path, "file of JSON lines; by default none"),
    )
    stages = STAGES
    only_reports = True

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        if not run.options["journal"] and run.options["file"] is None:
            raise UsageError("journal", "it is off, and there is no file", "set file")
        self._occurrences = Occurrences(run)

    def check(self) -> Iterator[Finding]:
        path = self.run.options["file"]
        if self.run.options["journal"]:
            problem = _problem_of(lambda: _connected().close())
            text = f"{JOURNAL}: {problem or 'it accepts lines'}"
            yield Finding(ERROR if problem else INFO, text)
        if path is not None:
            problem = _problem_of(lambda: _check_file(path))
            yield Finding(ERROR if problem else INFO, f"{path}: {problem or 'it can be written'}")

    def prepare(self) -> None:
        entry = self._occurrences.enter()
        self._log(entry, repeated=entry.event.stage in entry.reported)
        self._occurrences.mark_reported()

    def recover(self) -> None:
        ended = self._occurrences.ended()
        if not ended:
            self.run.say("this hook has not logged the beginning of an event")
        for entry in ended:
            self._log(entry)
        self._occurrences.remove(ended)

    def _log(self, entry: Occurrence, repeated: bool = False) -> None:
        values = {**report.values(entry, time.time()), "repeated": repeated}
        path = self.run.options["file"]
        if self.run.options["journal"]:
            fields = journal_fields(values, self.run.options["identifier"])
            self._try(f"log to the journal: {values['text']}", JOURNAL, _send, encode(fields))
        if path is not None:
            line = json.dumps(values, ensure_ascii=False)
            self._try(f"append to {path}: {line}", path, self._append, path, line)

    def _try(self, description: str, subject: str, action: Callable[..., object], *given: object) -> None:
        try:
            self.run.act(description, action, *given)
        except (OSError, HookError) as error:
            self.run.warn(f"{subject}: the line was not written: {_reason(error)}")

    def _append(self, path: str, line: str) -> None:
        descriptor = self._opened(path)
        try:
            _append(descriptor, line)
        finally:
            os.close(descriptor)

    def _opened(self, path: str) -> int:
        """Open the file and lock it."""
        for _attempt in range(_MOST_OPENED):
            descriptor = _open(path)
            try:
                if not self.run.deadline.wait_until(partial(durable_file.lock, descriptor), _LOCK_SECONDS, 0.1):
                    raise HookError(path, "another process has locked it")
                with_path = os.stat(path)
                if os.path.samestat(with_path, os.fstat(descriptor)):
                    return descriptor
            except FileNotFoundError:
                pass  # renamed, and not made again
            except BaseException:
                os.close(descriptor)
                raise
            os.close(descriptor)
        raise HookError(path, "another process replaces it again and again")


def journal_fields(values: Mapping[str, object], identifier: str) -> dict[str, str]:
    """Return the fields of one line in the journal."""
    own = {
        "MESSAGE": str(values["text"]),
        "MESSAGE_ID": MESSAGE_ID,
        "PRIORITY": str(_WARNING if values["stage"] == EMERGENCY else _NOTICE),
        "SYSLOG_IDENTIFIER": identifier,
    }
    for name, value in values.items():
        if name not in ("text", "host", "time", "repeated") and value not in ("", None):
            own["AZURE_" + ("" if name.startswith("event_") else "EVENT_") + name.upper()] = str(value)
    return own


def encode(fields: Mapping[str, str]) -> bytes:
    """Return the fields in the native protocol of the journal.

    A value with a line feed has its length, 64 bits in little-endian order, in front of it.
    """
    parts = []
    for name, value in fields.items():
        raw = value.encode("utf-8", "replace")
        if b"\n" in raw:
            parts.append(name.encode("ascii") + b"\n" + len(raw).to_bytes(8, "little") + raw + b"\n")
        else:
            parts.append(name.encode("ascii") + b"=" + raw + b"\n")
    return b"".join(parts)


def _connected() -> socket.socket:
    made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        made.settimeout(_JOURNAL_SECONDS)
        made.connect(JOURNAL)
    except BaseException:
        made.close()
        raise
    return made


def _send(datagram: bytes) -> None:
    with _connected() as connected:
        connected.send(datagram)


def _open(path: str) -> int:
    """Open the file for an append. Raises HookError, OSError."""
    # NONBLOCK: a pipe without a reader is an error in place of a wait
    flags = os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    folder, name = os.path.split(path)
    with opened_folder(folder) as above:
        try:
            descriptor = os.open(name, flags, dir_fd=above)
        except FileNotFoundError:
            descriptor = os.open(name, flags | os.O_CREAT, _MODE, dir_fd=above)
    info = os.fstat(descriptor)
    problem = None if stat.S_ISREG(info.st_mode) else "it is not a file"
    if problem is None and info.st_nlink > 1:
        problem = "it has several names (hard links), and may be a file of another use"
    if problem is not None:
        os.close(descriptor)
        raise HookError(path, problem)
    return descriptor


def _append(descriptor: int, line: str) -> None:
    """Append a line, or nothing: a full disk leaves no part of it."""
    size = os.fstat(descriptor).st_size
    # a line that a power cut has cut stays alone
    cut = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
    raw = (("\n" if cut else "") + line + "\n").encode("utf-8", "replace")
    try:
        written = os.write(descriptor, raw)
        if written < len(raw):
            os.write(descriptor, raw[written:])
        os.fsync(descriptor)
    except OSError:
        os.ftruncate(descriptor, size)
        raise


def _check_file(path: str) -> None:
    folder = os.path.dirname(path)
    with opened_folder(folder):
        is_there = os.path.lexists(path)
    if is_there:
        os.close(_open(path))
    elif not os.access(folder, os.W_OK | os.X_OK):
        raise HookError(folder, "it cannot be written")


def _problem_of(action: Callable[[], object]) -> str | None:
    try:
        action()
    except (OSError, HookError) as error:
        return _reason(error)
    return None


def _reason(error: Exception) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)


HOOK = Log
