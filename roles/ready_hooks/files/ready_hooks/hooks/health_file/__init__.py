# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""The ready hook health-file: a file decides whether the health probe of a load balancer succeeds."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from ready_hooks.core import arguments, commands
from ready_hooks.core.arguments import Option
from ready_hooks.core.errors import HookError, OutOfTime
from ready_hooks.core.hook import ERROR, INFO, WARNING, Finding, ReadyHook
from ready_hooks.hooks.health_file.saved_file import SavedFile, encoded, from_record, put, read

REMOVE, CREATE, WRITE = "remove", "create", "write"
_CHECK_INTERVAL, _CHECK_LIMIT = 1.0, 30.0


def content(value: object) -> str:
    """Return a text, which may be empty. Raises ValueError."""
    if not isinstance(value, (str, int)) or isinstance(value, bool):
        raise ValueError(f"expected a text, not {value!r}")
    return str(value)


class HealthFile(ReadyHook):
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
            before = found
            if record is not None and not _is_of_another(found, record):
                before = from_record(record["before"])
            self.run.remember({"path": path, "before": before, "after": target})
            self.run.act(f"{self.run.options['action']} {path}", put, path, target)
        self._wait(path)

    def recover(self) -> None:
        record = self.run.record.load()
        if record is None:
            self.run.say("nothing to restore")
            return
        path, before = record["path"], from_record(record["before"])
        self._check()
        found = read(path)
        if _is_of_another(found, record):
            self.run.warn(f"{path}: another program has changed it; it stays as it is")
        elif found != before:
            self.run.act(f"{'remove' if before is None else 'restore'} {path}", put, path, before)
        self.run.forget()

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


def _is_of_another(found: SavedFile | None, record: Mapping[str, Any]) -> bool:
    """Return True if another program has written the file since the preparation of the record."""
    before, after = from_record(record["before"]), from_record(record["after"])
    return found is not None and found != before and not found.is_like(after)


HOOK = HealthFile
