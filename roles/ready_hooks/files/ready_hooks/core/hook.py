# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""The base class of the hooks, and what it gets for one run."""

from __future__ import annotations

import abc
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Callable, ClassVar, NamedTuple, TextIO

from ready_hooks.core.arguments import Option
from ready_hooks.core.deadline import Deadline
from ready_hooks.core.errors import HookError, OutOfTime
from ready_hooks.core.event import Event
from ready_hooks.core.record import Record

PREPARE, EMERGENCY, STARTED, RECOVER = "prepare", "emergency", "started", "recover"
STAGES = (PREPARE, EMERGENCY, STARTED, RECOVER)

ERROR, WARNING, INFO = "error", "warning", "info"

# values of the option on_timeout
FAIL, CONTINUE = "fail", "continue"


class Finding(NamedTuple):
    """One finding of the verb check: ERROR (the hook would fail), WARNING or INFO, and a sentence."""

    severity: str
    text: str


class Run:
    """One run of a hook.

    `name` is that of the hook among those of the host; `record` has what a preparation has to undo. `has_acted`
    says whether there was something to change, also in a dry run.
    """

    def __init__(
        self, name: str, options: Mapping[str, Any], event: Event, deadline: Deadline, record: Record, dry_run: bool
    ) -> None:
        self.name, self.options, self.event = name, options, event
        self.deadline, self.record, self.dry_run = deadline, record, dry_run
        self.has_acted = False

    def say(self, text: str) -> None:
        """Print a line for the log."""
        _print(text, sys.stdout)

    def warn(self, text: str) -> None:
        """Print a line for the log, to standard error."""
        _print(text, sys.stderr)

    def act(self, description: str, action: Callable[..., object], *arguments: object) -> None:
        """Print the description and do the action; in a dry run, print it only.

        The description begins with an infinitive: "set web/web1 to drain".
        """
        self.has_acted = True
        self.say(f"would {description}" if self.dry_run else description)
        if not self.dry_run:
            action(*arguments)

    def fail(self, problems: Sequence[HookError]) -> None:
        """Raise the first of the problems, and warn of the others; without one, go on."""
        for other in problems[1:]:
            self.warn(str(other))
        if problems:
            raise problems[0]

    def out_of_time(self, subject: str, problem: str, remedy: str) -> None:
        """End a wait that was not long enough: raise OutOfTime, or warn if the option on_timeout is not FAIL."""
        error = OutOfTime(subject, problem, remedy)
        if self.options["on_timeout"] == FAIL:
            raise error
        self.warn(str(error))

    def preparation_of(self, key: str, value: str) -> dict[str, Any] | None:
        """Return the record, or None without one. Raises HookError if its `key` has another value than this one.

        The record has one value, such as one node. What prepare changes on another one would never be undone.
        """
        data = self.record.load()
        if data is not None and data[key] != value:
            raise HookError(value, f"the last preparation was of {data[key]}", f"run recover first, or correct {key}")
        return data

    def remember(self, data: Mapping[str, Any]) -> None:
        """Write the record, before the change that it describes; not in a dry run. Raises HookError."""
        if not self.dry_run:
            self.record.save(data, self.event.event_id)

    def shorten_record(self, data: Mapping[str, Any]) -> None:
        """Write what is left to undo; not in a dry run.

        An error, such as a full disk, is a warning and must not keep the rest from being undone: the
        longer record only repeats what is done already.
        """
        try:
            self.remember(data)
        except HookError as error:
            self.warn(str(error))

    def forget(self) -> None:
        """Remove the record, after all of it is undone; not in a dry run. Raises HookError."""
        if not self.dry_run:
            self.record.remove()


def _print(text: str, file: TextIO) -> None:
    """Print a line. Where its reader is gone, as after a lost connection, the hook goes on without a log."""
    try:
        print(text, file=file, flush=True)
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), file.fileno())


class ReadyHook(abc.ABC):
    """A hook.

    A subclass sets the class attributes and defines the methods; one whose `prepare` writes a record is a
    RecordingHook. All methods raise HookError. The constructor raises UsageError for options that do not
    go together, and does nothing else.

    Attributes:
        name: as users write it.
        summary: one sentence.
        stages: those in which the hook runs. The base class runs `recover` in stage recover, and
            `prepare` in all others.
        only_reports: whether the hook changes nothing on the host, and treats each error as a
            warning: a report that fails must not prevent an approval.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    options: ClassVar[tuple[Option, ...]]
    stages: ClassVar[tuple[str, ...]] = (PREPARE, RECOVER)
    only_reports: ClassVar[bool] = False

    def __init__(self, run: Run) -> None:
        self.run = run

    @abc.abstractmethod
    def check(self) -> Iterator[Finding]:
        """Yield what is wrong, or worth to know, before an event comes. Changes nothing.

        A HookError is a finding, too, and ends the check.
        """

    @abc.abstractmethod
    def prepare(self) -> None:
        """Prepare the workload for the interruption."""

    @abc.abstractmethod
    def recover(self) -> None:
        """Undo the preparation."""


class RecordingHook(ReadyHook):
    """A hook whose `prepare` writes a record, which `undo` gets.

    `prepare` is idempotent: a repeat, or a second event before the recovery of the first, keeps the record
    of the first one.
    """

    def recover(self) -> None:
        """Undo what the record says, then remove it; without one there is nothing to undo."""
        record = self.run.record.load()
        if record is None:
            self.run.say("nothing to undo")
            return
        self.undo(record)
        self.run.forget()

    @abc.abstractmethod
    def undo(self, record: dict[str, Any]) -> None:
        """Undo the preparation of the record; an error keeps it for the next recover."""
