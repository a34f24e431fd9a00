# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Runs other programs within the time limit of the hook."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ready_hooks.core.deadline import Deadline
from ready_hooks.core.errors import HookError, OutOfTime


class Result(NamedTuple):
    """The end of a program: exit status (minus the number of a signal), standard output, standard error."""

    status: int
    output: str
    errors: str

    @property
    def reason(self) -> str:
        """The last line that the program printed, for a message."""
        lines = (self.errors.strip() or self.output.strip()).splitlines()
        return lines[-1].strip() if lines else f"exit status {self.status}"


def run(
    arguments: Sequence[str],
    deadline: Deadline,
    most: float | None = None,
    given: str | None = None,
    environment: Mapping[str, str] | None = None,
    user: str | None = None,
) -> Result:
    """Run a program and wait for its end; at the time limit, end its whole process group.

    Args:
        arguments: the program and its arguments.
        deadline: of the hook.
        most: seconds for this program; by default all that the hook has left.
        given: its standard input; by default empty.
        environment: variables beside those of this process.
        user: the user to run it as, by runuser; by default that of this process.

    Raises:
        HookError: the program does not exist or cannot be started.
        OutOfTime: it did not end in time.
    """
    if user is not None and os.geteuid() == 0:
        arguments = ["runuser", "-u", user, "--", *arguments]
    limit = deadline.left() if most is None else min(most, deadline.left())
    try:
        process = subprocess.Popen(
            list(arguments),
            stdin=subprocess.DEVNULL if given is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
            env={**os.environ, **(environment or {})},
            start_new_session=True,
        )
    except OSError as error:
        raise HookError(
            arguments[0], f"it cannot be started: {error.strerror}", "install it, or correct its path"
        ) from None
    try:
        output, errors = process.communicate(given, timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise OutOfTime(" ".join(arguments), f"it did not end within {limit:.0f} s") from None
    return Result(process.returncode, output, errors)


def must_run(
    arguments: Sequence[str],
    deadline: Deadline,
    most: float | None = None,
    given: str | None = None,
    environment: Mapping[str, str] | None = None,
    user: str | None = None,
) -> str:
    """Run a program as `run` does, and return its standard output. Raises HookError if it fails, too."""
    result = run(arguments, deadline, most, given, environment, user)
    if result.status != 0:
        raise HookError(" ".join(arguments), f"it failed with status {result.status}: {result.reason}")
    return result.output


def found(program: str) -> str | None:
    """Return the path of a program that can be executed, or None."""
    return shutil.which(program)
