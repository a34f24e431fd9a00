# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Removes or writes the file by which the health probe of a load balancer succeeds, and restores it."""

from __future__ import annotations

import base64
import os
import stat
from collections.abc import Iterator
from typing import Any, NamedTuple

from ready_hooks.core import arguments, commands, durable_file
from ready_hooks.core.arguments import Option
from ready_hooks.core.errors import HookError, OutOfTime
from ready_hooks.core.hook import ERROR, INFO, WARNING, Finding, RecordingHook
from ready_hooks.core.ownership import opened_folder

REMOVE, CREATE, WRITE = "remove", "create", "write"
_CHECK_INTERVAL, _CHECK_LIMIT = 1.0, 30.0
_MOST_BYTES = 1024 * 1024
# without the bits that let a program run as its owner
_MODE = 0o777


def content(value: object) -> str:
    """Return a text, which may be empty. Raises ValueError."""
    if not isinstance(value, (str, int)) or isinstance(value, bool):
        raise ValueError(f"expected a text, not {value!r}")
    return str(value)


class SavedFile(NamedTuple):
    """A regular file, or a symbolic link; the mode of a link does not count.

    `content` is the content, or the target of the link, in base64.
    """

    content: str
    is_link: bool = False
    mode: int = 0o644
    uid: int = 0
    gid: int = 0

    def is_like(self, other: SavedFile | None) -> bool:
        """Return True if the other one is of the same kind and content."""
        return other is not None and self[:2] == other[:2]


def encoded(text: str) -> str:
    """Return the text as the content of a SavedFile."""
    return base64.b64encode(text.encode("utf-8", "surrogateescape")).decode("ascii")


def from_record(data: Any) -> SavedFile | None:
    """Return what a record has; a NamedTuple is a list there."""
    return None if data is None else SavedFile(*data)


def read(path: str) -> SavedFile | None:
    """Return the file at this path, or None. Raises HookError if it is neither a small file nor a link."""
    folder, name = os.path.split(path)
    try:
        with opened_folder(folder) as descriptor:
            info, content = _read(descriptor, name)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise HookError(path, f"it cannot be read: {error.strerror}") from None
    is_link = stat.S_ISLNK(info.st_mode)
    if not is_link and not stat.S_ISREG(info.st_mode):
        raise HookError(path, "it is neither a file nor a symbolic link", "correct path")
    if len(content) > _MOST_BYTES:
        raise HookError(path, f"it is larger than {_MOST_BYTES} bytes", "use a small file for the probe")
    return SavedFile(base64.b64encode(content).decode("ascii"), is_link, info.st_mode & _MODE, info.st_uid, info.st_gid)


def _read(folder: int, name: str) -> tuple[os.stat_result, bytes]:
    """Return what is known of one file, and its content; b"" for what is neither a file nor a link."""
    info = os.lstat(name, dir_fd=folder)
    if stat.S_ISLNK(info.st_mode):
        return info, os.fsencode(os.readlink(name, dir_fd=folder))
    # O_NONBLOCK: to open a named pipe would wait for its writer
    descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    try:
        # another user may have replaced the file: owner and content must be those of one file
        info = os.fstat(descriptor)
        if not stat.S_ISREG(info.st_mode):
            return info, b""
        with open(descriptor, "rb", closefd=False) as file:
            return info, file.read(_MOST_BYTES + 1)
    finally:
        os.close(descriptor)


def put(path: str, file: SavedFile | None) -> None:
    """Make the path the file; None removes it. A reader sees the old file or the new one. Raises HookError."""
    folder, name = os.path.split(path)
    try:
        with opened_folder(folder) as descriptor:
            if file is None:
                durable_file.remove(name, descriptor)
            elif file.is_link:
                with durable_file.replacing(name, descriptor) as draft:
                    _make_link(descriptor, draft, file)
            else:
                content = base64.b64decode(file.content)
                durable_file.write(name, content, file.mode & _MODE, (file.uid, file.gid), descriptor)
    except OSError as error:
        raise HookError(path, f"it cannot be changed: {error.strerror}") from None


def _make_link(folder: int, new: str, file: SavedFile) -> None:
    """Make a link, and give it to the owner of the saved one."""
    os.symlink(base64.b64decode(file.content), os.fsencode(new), dir_fd=folder)
    descriptor = os.open(new, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        # the owner of the folder may have put a file of root in its place
        if stat.S_ISLNK(os.fstat(descriptor).st_mode):
            # this path leads to the link itself, whatever has its name now
            os.chown(f"/proc/self/fd/{descriptor}", file.uid, file.gid)
    finally:
        os.close(descriptor)


class HealthFile(RecordingHook):
    """Remove, create or write a file.

    The record has the file as it was before, and as this hook leaves it. Recover restores the file
    if it still is as this hook has left it, or is gone; a change of another program stays.
    """

    name = "health-file"
    summary = "Removes or writes the file that a health probe depends on, and restores it."
    options = (
        Option("path", arguments.path, "the file", required=True),
        Option(
            "action",
            arguments.one_of(REMOVE, CREATE, WRITE),
            "what to do: remove the file, create it unless it exists, or write it in any case",
            REMOVE,
        ),
        Option("content", content, "content of the file that is created or written (default: empty)", ""),
        Option(
            "wait", arguments.seconds, "seconds to wait after the change, until the load balancer has seen it", 20.0
        ),
        Option("check_command", arguments.command, "command that has to succeed before recover restores the file"),
    )

    def check(self) -> Iterator[Finding]:
        path, command = self.run.options["path"], self.run.options["check_command"]
        if not os.access(os.path.dirname(path), os.W_OK | os.X_OK):
            yield Finding(ERROR, f"{os.path.dirname(path)}: not a folder in which files can be changed; correct path")
        try:
            found = read(path)
        except HookError as error:
            yield Finding(ERROR, str(error))
        else:
            word = "absent" if found is None else "present"
            changes = self._target(found) is not found or self.run.record.load() is not None
            yield Finding(INFO if changes else WARNING, f"{path}: {word}" + ("" if changes else "; nothing to do"))
        if command is not None and commands.found(command[0]) is None:
            yield Finding(ERROR, f"{command[0]}: check_command cannot be executed; correct its path")

    def prepare(self) -> None:
        path = self.run.options["path"]
        record = self.run.preparation_of("path", path)
        found = read(path)
        target = self._target(found)
        if target is found and record is None:
            self.run.say(f"{path} is {'absent' if found is None else 'present'} already")
            return
        if target is not found:
            before = found if record is None else from_record(record["before"])
            self.run.remember({"path": path, "before": before, "after": target})
            self.run.act(f"{self.run.options['action']} {path}", put, path, target)
        self._wait(path)

    def undo(self, record: dict[str, Any]) -> None:
        path, before, after = record["path"], from_record(record["before"]), from_record(record["after"])
        self._check()
        found = read(path)
        if found is not None and found != before and not found.is_like(after):
            self.run.warn(f"{path}: another program has changed it; it stays as it is")
        elif found != before:
            self.run.act(f"{'remove' if before is None else 'restore'} {path}", put, path, before)

    def _target(self, found: SavedFile | None) -> SavedFile | None:
        """Return the file as prepare leaves it; the same object where nothing is to do."""
        action = self.run.options["action"]
        if action == REMOVE:
            return None
        if action == CREATE and found is not None:
            return found
        kept = () if found is None or found.is_link else found[2:]
        target = SavedFile(encoded(self.run.options["content"]), False, *kept)
        return found if target.is_like(found) else target

    def _wait(self, path: str) -> None:
        wait = self.run.options["wait"]
        if self.run.dry_run:
            self.run.say(f"would wait {wait:g} s for the load balancer")
        elif not self.run.deadline.pause(wait):
            remedy = "raise the time of the hook, or lower wait"
            raise OutOfTime(path, f"the time of the hook has ended before the wait of {wait:g} s", remedy)

    def _check(self) -> None:
        """Repeat the command until it succeeds. Raises HookError."""
        command = self.run.options["check_command"]
        if command is None:
            return
        commands.require(command[0], "correct check_command")
        if self.run.dry_run:
            self.run.say(f"would wait until {command[-1]!r} succeeds")
            return

        def succeeds() -> bool:
            commands.must_run(command, self.run.deadline, _CHECK_LIMIT)
            return True

        try:
            self.run.deadline.retry_until(succeeds, interval=_CHECK_INTERVAL)
        except HookError as error:
            raise OutOfTime("check_command", str(error), "the file is not restored yet") from None


HOOK = HealthFile
