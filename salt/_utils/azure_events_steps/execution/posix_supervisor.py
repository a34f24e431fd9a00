# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""Runs one step in a fork of this process, on POSIX systems.

The fork is the supervisor. It adopts all processes that the step starts, and ends them at the time
limit, or when the process that requested the step exits.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import time
from typing import Mapping, NoReturn, Sequence

from ..configuration import COMMAND, Step
from . import posix_processes
from .results import (
    DONE,
    END_TIMEOUT,
    FAILED,
    LAST_OUTPUT_TIMEOUT,
    PAUSES,
    TAIL,
    Call,
    of_command,
    of_timeout,
    output_end,
)


def supervise(
    step: Step, variables: Mapping[str, str], call: Call, not_inherited: Sequence[int] = ()
) -> tuple[str, str]:
    """Run the step in a fork; return its outcome and the end of its output.

    The arguments are those of `run_step`.
    """
    answer_read, answer_write = os.pipe()
    caller_read, caller_write = os.pipe()
    supervisor = os.fork()
    if supervisor == 0:
        _supervise(step, variables, call, answer_write, caller_read, (answer_read, caller_write), not_inherited)
    os.close(answer_write)
    os.close(caller_read)
    try:
        answer = _read_all(answer_read, step.timeout + END_TIMEOUT)
        if not answer:
            # the supervisor cannot be stuck in the step, which has a process of its own
            os.kill(supervisor, signal.SIGKILL)
    finally:
        # the closed pipe shows the supervisor that this process no longer waits
        os.close(caller_write)
        os.close(answer_read)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(supervisor, 0)
    try:
        outcome, output = json.loads(answer)
    except ValueError:
        return FAILED, "the process that ran the step has ended without a result"
    return outcome, output


def _supervise(
    step: Step,
    variables: Mapping[str, str],
    call: Call,
    answer: int,
    caller: int,
    ends_of_caller: Sequence[int],
    not_inherited: Sequence[int],
) -> NoReturn:
    """Act as the supervisor: run the step, write its result, and exit.

    It keeps ``not_inherited`` open, such as the lock of a job: if the job is killed, the next one waits until
    the processes of the step have ended.
    """
    try:
        for fd in ends_of_caller:
            os.close(fd)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        os.setsid()
        posix_processes.adopt_orphans()
        result = _supervised(step, variables, call, answer, caller, not_inherited)
        with contextlib.suppress(OSError):
            os.write(answer, json.dumps(result).encode("ascii"))
    except BaseException as error:  # pylint: disable=broad-except
        # no code of the parent may run in this process
        with contextlib.suppress(OSError):
            os.write(answer, json.dumps([FAILED, f"{type(error).__name__}: {error}"]).encode("ascii"))
    finally:
        os._exit(0)


def _supervised(
    step: Step, variables: Mapping[str, str], call: Call, answer: int, caller: int, not_inherited: Sequence[int]
) -> tuple[str, str]:
    output_read, output_write = os.pipe()
    deadline = time.monotonic() + step.timeout
    if step.kind == COMMAND:
        try:
            worker = _start_command(step, variables, output_write)
        except (OSError, ValueError) as error:
            return FAILED, f"the command cannot be started: {error}"
    else:
        worker = _start_call(step, variables, call, output_write, (answer, caller, output_read, *not_inherited))
    os.close(output_write)
    tail = b""
    status: int | None = None
    pause = PAUSES[0]
    listening = [output_read, caller]
    while status is None:
        ready = select.select(listening, [], [], pause)[0]
        pause = min(pause * 1.5, PAUSES[1])
        if output_read in ready:
            piece = os.read(output_read, 65536)
            tail = (tail + piece)[-TAIL:]
            if not piece:
                listening.remove(output_read)
        status = _reaped(worker)
        if status is None and (caller in ready or time.monotonic() >= deadline):
            posix_processes.end_descendants(worker)
            return of_timeout(step, tail.decode("utf-8", "replace"))
    if output_read in listening:
        tail = _with_rest_of(output_read, tail)
    text = tail.decode("utf-8", "replace")
    if step.kind != COMMAND:
        try:
            succeeded, text = json.loads(text)
        except ValueError:
            return FAILED, f"the process that ran the step has ended with {os.waitstatus_to_exitcode(status)}"
        return DONE if succeeded else FAILED, output_end(text)
    return of_command(os.waitstatus_to_exitcode(status), text)


def _start_command(step: Step, variables: Mapping[str, str], output: int) -> int:
    process = subprocess.Popen(  # pylint: disable=consider-using-with
        step.action,
        shell=isinstance(step.action, str),
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        cwd="/",
        env={**os.environ, **variables},
        start_new_session=True,
    )
    # the supervisor waits for all its children itself; otherwise the object could reap this one
    process.returncode = 0
    return process.pid


def _start_call(step: Step, variables: Mapping[str, str], call: Call, output: int, not_inherited: Sequence[int]) -> int:
    """Start a process that makes the call and writes its result as JSON."""
    worker = os.fork()
    if worker != 0:
        return worker
    try:
        for fd in not_inherited:
            os.close(fd)
        os.setsid()
        try:
            succeeded, text = call(step, variables)
        except BaseException as error:  # pylint: disable=broad-except
            succeeded, text = False, f"{type(error).__name__}: {error}"
        os.write(output, json.dumps([bool(succeeded), output_end(text)]).encode("ascii"))
    finally:
        os._exit(0)


def _reaped(worker: int) -> int | None:
    """Return the status of the worker if it has exited, and reap adopted processes."""
    status = None
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, ended = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            if pid == worker:
                status = ended
                break
    return status


def _with_rest_of(fd: int, tail: bytes) -> bytes:
    """Return the end of the output with that of LAST_OUTPUT_TIMEOUT seconds."""
    ends = time.monotonic() + LAST_OUTPUT_TIMEOUT
    while select.select([fd], [], [], max(0.0, ends - time.monotonic()))[0]:
        piece = os.read(fd, 65536)
        tail = (tail + piece)[-TAIL:]
        if not piece or time.monotonic() >= ends:
            break
    return tail


def _read_all(fd: int, timeout: float) -> bytes:
    pieces = []
    ends = time.monotonic() + timeout
    while select.select([fd], [], [], max(0.0, ends - time.monotonic()))[0]:
        piece = os.read(fd, 65536)
        if not piece:
            break
        pieces.append(piece)
    return b"".join(pieces)
