# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Runs a command of the operator before an event, and its counterpart afterwards."""

from __future__ import annotations

import os
import pwd
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from ready_hooks.core import arguments, commands
from ready_hooks.core.arguments import Option
from ready_hooks.core.errors import HookError, OutOfTime, UsageError
from ready_hooks.core.hook import ERROR, INFO, WARNING, Finding, RecordingHook, Run
from ready_hooks.core.ownership import change_problem

_SHELL = ("/bin/sh", "-c")


def variables(value: object) -> Mapping[str, str]:
    """Return environment variables: a mapping, or a text NAME=VALUE. Raises ValueError."""
    if isinstance(value, str) and "=" in value:
        name, _equals, word = value.partition("=")
        value = {name: word}
    if not isinstance(value, Mapping):
        raise ValueError(f"expected a mapping of names to texts, not {value!r}")
    for name, word in value.items():
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", str(name)):
            raise ValueError(f"expected the name of a variable, not {name!r}")
        if isinstance(word, bool) or not isinstance(word, (str, int, float)) or "\0" in str(word):
            raise ValueError(f"expected a text for {name}, not {word!r}")
    return {str(name): str(word) for name, word in value.items()}


class Command(RecordingHook):
    """Run a command, and its counterpart if it was begun.

    The record says only that the command was begun.
    """

    name = "command"
    summary = "Runs any command before an event, and its counterpart afterwards."
    options = (
        Option("prepare", arguments.command, "command to run before the event: a list, or a text for the shell"),
        Option("recover", arguments.command, "its counterpart; it runs if the preparation was begun"),
        Option("check", arguments.command, "command that finds mistakes before an event, and changes nothing"),
        Option("prepare_timeout", arguments.seconds, "seconds for the command prepare; by default all that are left"),
        Option("recover_timeout", arguments.seconds, "seconds for the command recover; by default all that are left"),
        Option("check_timeout", arguments.seconds, "seconds for the command check", 10.0),
        Option("user", arguments.text, "user to run the commands as; by default that of the hook"),
        Option("environment", variables, "more environment variables of the commands, NAME=VALUE", many=True),
    )

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        if not run.options["prepare"] and not run.options["recover"]:
            raise UsageError("prepare", "it is missing, and recover, too", "set at least one of them")

    def check(self) -> Iterator[Finding]:
        given = [verb for verb in ("prepare", "recover", "check") if self.run.options[verb]]
        for verb in given:
            problem = self._problem(self.run.options[verb])
            if problem:
                yield Finding(ERROR, f"{verb}: {problem}")
            elif self.run.options["user"] is None:
                yield from _trusted(verb, self.run.options[verb][0])
        user = self.run.options["user"]
        if user is not None:
            try:
                pwd.getpwnam(user)
            except KeyError:
                raise HookError(user, "there is no such user", "correct the option user") from None
            commands.as_user((), user)
        if "prepare" in given and "recover" not in given:
            yield Finding(WARNING, "recover: without it nothing undoes the effect of prepare; set it if that is needed")
        if "check" in given:
            yield self._checked()

    def _problem(self, command: Sequence[str]) -> str | None:
        """Return why the command cannot be started, or None."""
        if tuple(command[:2]) == _SHELL and len(command) == 3:
            result = commands.run([_SHELL[0], "-n", *command[1:]], self.run.deadline)
            return None if result.status == 0 else f"the shell cannot read it: {result.reason}"
        if commands.found(command[0]) is None:
            return f"there is no program {command[0]}; install it, or correct its path"
        return None

    def _checked(self) -> Finding:
        """Run the command check, and return its result."""
        result = commands.run(
            self.run.options["check"],
            self.run.deadline,
            self.run.options["check_timeout"],
            environment=self._environment(),
            user=self.run.options["user"],
        )
        if result.status != 0:
            return Finding(ERROR, f"check: {result.reason}")
        return Finding(INFO, f"check: {result.reason if result.output.strip() else 'it succeeded'}")

    def prepare(self) -> None:
        self.run.remember({"begun": True})
        self._run("prepare")

    def undo(self, record: dict[str, Any]) -> None:
        self._run("recover")

    def _run(self, verb: str) -> None:
        command = self.run.options[verb]
        if not command:
            self.run.say(f"there is no command for {verb}")
            return
        words = command[2] if tuple(command[:2]) == _SHELL else " ".join(command)
        self.run.act(f"run {words}", self._execute, verb, command)

    def _execute(self, verb: str, command: Sequence[str]) -> None:
        most = cast("float | None", self.run.options[verb + "_timeout"])
        try:
            status = commands.run_through(
                command, self.run.deadline, most, self._environment(), self.run.options["user"]
            )
        except OutOfTime as error:
            raise OutOfTime(verb, str(error), "it was ended with all processes that it had started") from None
        if status != 0:
            ending = f"exit status {status}" if status > 0 else f"signal {-status}"
            raise HookError(verb, f"the command ended with {ending}")

    def _environment(self) -> Mapping[str, str]:
        return {name: word for each in self.run.options["environment"] for name, word in each.items()}


def _trusted(verb: str, program: str) -> Iterator[Finding]:
    """Yield a warning if users other than that of the hook, usually root, can change the program."""
    path = os.path.abspath(commands.found(program) or program)
    problem = change_problem(path)
    if problem is not None:
        yield Finding(WARNING, f"{verb}: another user can change {path}: {problem}; set user")


HOOK = Command
