# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Runs other programs within the time limit of the hook."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, NamedTuple, Optional

from ready_hooks.core.deadline import Deadline
from ready_hooks.core.errors import HookError, OutOfTime

# seconds between two looks at a program, and for the last output of one that has ended
_LOOK, _LAST_OUTPUT = 0.1, 0.5
# bytes that a program may print: it can be one of another user, and its output be endless
_MOST_OUTPUT = 64 << 20


# variables of a program beside those of this process; None removes one of these
Environment = Mapping[str, Optional[str]]


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
    given: str = "",
    environment: Environment | None = None,
    user: str | None = None,
) -> Result:
    """Run a program and wait for its end; at the time limit, end its whole process group.

    Processes that the program leaves in the background continue; their output is not read. `most` is in seconds,
    by default all that the hook has left. `given` is the standard input of the program, by default empty. The program
    runs as `user` by runuser, by default as the user of this process.

    Raises:
        HookError: the program does not exist, cannot be started, or prints too much.
        OutOfTime: it did not end in time.
    """
    command = as_user(arguments, user)
    with _file_of(given) as stdin, _running(command, stdin, subprocess.PIPE, environment) as process:
        limit = deadline.left() if most is None else min(most, deadline.left())
        output, errors = _communicate(process, arguments, limit)
    return Result(process.returncode, _text(output), _text(errors))


def run_through(
    arguments: Sequence[str],
    deadline: Deadline,
    most: float | None = None,
    environment: Environment | None = None,
    user: str | None = None,
) -> int:
    """Run a program as `run` does, with the standard input and output of this process; return its status."""
    with _running(as_user(arguments, user), None, None, environment) as process:
        limit = deadline.left() if most is None else min(most, deadline.left())
        try:
            return process.wait(limit)
        except subprocess.TimeoutExpired:
            raise _out_of_time(arguments, limit) from None


def as_user(arguments: Sequence[str], user: str | None) -> Sequence[str]:
    """Return the arguments to run a program as this user. Raises HookError if this process may not."""
    if user is None or user == _own_name():
        return arguments
    if os.geteuid() != 0:
        raise HookError(user, "only root can run a program as another user", "run the hook as root")
    return ["runuser", "-u", user, "--", *arguments]


def _own_name() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return ""


@contextlib.contextmanager
def _file_of(text: str) -> Iterator[IO[bytes]]:
    """Open a file in memory with this text: nothing has to write it while the output is read."""
    with open(os.memfd_create("stdin"), "w+b") as file:
        file.write(text.encode())
        file.seek(0)
        yield file


@contextlib.contextmanager
def _running(
    arguments: Sequence[str], stdin: IO[bytes] | None, output: int | None, environment: Environment | None
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a program; end its process group if the block raises an error, such as OutOfTime or SystemExit by SIGTERM.

    A SIGTERM that arrives during the start counts in the block: it must not leave the program running.
    """
    arrived: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _frame: arrived.append(number))
    try:
        process = _start(arguments, stdin, output, environment)
    except BaseException:
        signal.signal(signal.SIGTERM, before)
        raise
    try:
        signal.signal(signal.SIGTERM, before)
        for number in arrived:
            signal.raise_signal(number)
        yield process
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise
    finally:
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()


def _start(
    arguments: Sequence[str],
    stdin: IO[bytes] | None,
    output: int | None,
    environment: Environment | None,
) -> subprocess.Popen[bytes]:
    variables: dict[str, str | None] = {**os.environ, **(environment or {})}
    try:
        return subprocess.Popen(
            list(arguments),
            stdin=stdin,
            stdout=output,
            stderr=output,
            env={name: value for name, value in variables.items() if value is not None},
            start_new_session=True,
        )
    except OSError as error:
        raise HookError(
            arguments[0], f"it cannot be started: {error.strerror}", "install it, or correct its path"
        ) from None


def _communicate(
    process: subprocess.Popen[bytes], arguments: Sequence[str], limit: float
) -> tuple[bytes | None, bytes | None]:
    """Return the output of the program until its end, even if other processes keep the output open."""
    end = time.monotonic() + limit
    left, read = limit, -1
    while True:
        ended = process.poll() is not None
        try:
            return process.communicate(timeout=_LAST_OUTPUT if ended else min(_LOOK, left))
        except subprocess.TimeoutExpired as error:
            before, read = read, len(error.output or b"") + len(error.stderr or b"")
            if read > _MOST_OUTPUT:
                raise HookError(" ".join(arguments), f"it prints more than {_MOST_OUTPUT >> 20} MiB") from None
            # this process may have had no time to read: the end is where nothing more comes
            if ended and read == before:
                return error.output, error.stderr
        left = max(0.0, end - time.monotonic())
        if left == 0 and process.poll() is None:
            raise _out_of_time(arguments, limit)


def _out_of_time(arguments: Sequence[str], limit: float) -> OutOfTime:
    return OutOfTime(" ".join(arguments), f"it did not end within {limit:.0f} s")


def _text(output: bytes | None) -> str:
    return (output or b"").decode("utf-8", "replace").replace("\r\n", "\n")


def must_run(
    arguments: Sequence[str],
    deadline: Deadline,
    most: float | None = None,
    given: str = "",
    environment: Environment | None = None,
    user: str | None = None,
) -> str:
    """Run a program as `run` does, and return its standard output. Raises HookError if it fails, too."""
    result = run(arguments, deadline, most, given, environment, user)
    if result.status != 0:
        raise HookError(" ".join(arguments), f"it failed with status {result.status}: {result.reason}")
    return result.output


def require(program: str, remedy: str) -> None:
    """Raise HookError if there is no such program."""
    if found(program) is None:
        raise HookError(program, "there is no such program", remedy)


def found(program: str) -> str | None:
    """Return the path of a program that can be executed, or None."""
    return shutil.which(program)
