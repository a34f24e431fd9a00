# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""Runs one step in a job object, on Windows.

A function or an SLS file runs in a new Python, which gets it by a pipe and answers by another one.
The handle of the job object belongs to this process alone; therefore Windows ends the processes of
the step when this process exits.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import subprocess
import sys
import threading
import time
from typing import IO, Mapping, Sequence

from ..configuration import COMMAND, Step
from . import windows_job, windows_pipe
from .cmd_syntax import without_cmd_syntax
from .results import (
    DONE,
    END_TIMEOUT,
    FAILED,
    LAST_OUTPUT_TIMEOUT,
    PAUSES,
    TAIL,
    Call,
    decode_windows_output,
    of_command,
    of_timeout,
    output_end,
)

assert sys.platform == "win32"

# the codec of the console's code page
_CODE_PAGE = "oem"
# the folder of this package
_UTILS = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_FLAGS = windows_job.CREATE_SUSPENDED | subprocess.CREATE_NO_WINDOW
# without the empty entry of "-c": a user may have put modules into the working folder of an administrator
_CALL_PROGRAM = (
    "import sys; sys.path[:] = [entry for entry in sys.path if entry]; "
    "import json; sys.path[:] = json.loads(sys.stdin.buffer.readline()); "
    "from azure_events_steps.execution.call_process import main; main()"
)


def supervise(
    step: Step, variables: Mapping[str, str], call: Call, _not_inherited: Sequence[int] = ()
) -> tuple[str, str]:
    """Run the step in a job object; return its outcome and the end of its output.

    The arguments are those of `run_step`. Descriptors are not inherited.
    """
    try:
        with contextlib.closing(windows_job.Job()) as job, contextlib.closing(windows_pipe.OutputPipe()) as output:
            deadline = time.monotonic() + step.timeout
            if step.kind == COMMAND:
                process = _start_command(step, variables, output)
            else:
                process = _start_call(step, variables, call, output)
            try:
                job.start(process.pid)
            except OSError:
                process.kill()
                raise
            return _watched(step, process, job, output, deadline)
    except (OSError, ValueError) as error:
        return FAILED, f"the {step.kind} cannot be started: {error}"


def _watched(
    step: Step, process: subprocess.Popen[bytes], job: windows_job.Job, output: windows_pipe.OutputPipe, deadline: float
) -> tuple[str, str]:
    """Wait for the end of the step or its timeout."""
    tail = b""
    pause = PAUSES[0]
    while process.poll() is None:
        piece = output.read() or b""
        tail = (tail + piece)[-TAIL:]
        if time.monotonic() >= deadline:
            job.end(END_TIMEOUT)
            return of_timeout(step, decode_windows_output(tail, _CODE_PAGE))
        if not piece:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(pause)
            pause = min(pause * 1.5, PAUSES[1])
    job.release()
    text = decode_windows_output(_with_rest_of(output, tail), _CODE_PAGE)
    if step.kind == COMMAND:
        return of_command(process.returncode, text)
    try:
        succeeded, text = json.loads(text)
    except ValueError:
        return FAILED, f"the process that ran the step has ended with {process.returncode}"
    return DONE if succeeded else FAILED, output_end(text)


def _start_command(
    step: Step, variables: Mapping[str, str], output: windows_pipe.OutputPipe
) -> subprocess.Popen[bytes]:
    """Start a command suspended."""
    process = subprocess.Popen(  # pylint: disable=consider-using-with
        step.action,
        shell=isinstance(step.action, str),
        stdin=subprocess.DEVNULL,
        stdout=output.write_end,
        stderr=output.write_end,
        cwd=os.environ.get("SYSTEMDRIVE", "C:") + "\\",
        env={**os.environ, **{name: without_cmd_syntax(value) for name, value in variables.items()}},
        creationflags=_FLAGS,
    )
    output.close_write_end()
    return process


def _start_call(
    step: Step, variables: Mapping[str, str], call: Call, output: windows_pipe.OutputPipe
) -> subprocess.Popen[bytes]:
    """Start a Python suspended, which makes the call and writes its result as JSON."""
    try:
        request = pickle.dumps((call, step, dict(variables)))
    except Exception as error:  # pylint: disable=broad-except  # objects have their own errors
        raise ValueError(f"its call cannot be sent to another process: {error}") from error
    # Salt removes the folder of utilities from the path after an import; an empty entry means the working folder
    path = json.dumps([_UTILS, *(str(entry) or os.getcwd() for entry in sys.path)])
    process = subprocess.Popen(  # pylint: disable=consider-using-with
        [sys.executable, "-c", _CALL_PROGRAM],
        stdin=subprocess.PIPE,
        stdout=output.write_end,
        stderr=subprocess.DEVNULL,
        creationflags=_FLAGS,
    )
    output.close_write_end()
    # the process may end, or exceed its timeout, before it has read the request
    threading.Thread(
        target=_send,
        args=(process.stdin, path.encode("ascii") + b"\n" + request),
        name="azure_events_step",
        daemon=True,
    ).start()
    return process


def _send(pipe: IO[bytes], request: bytes) -> None:
    with contextlib.suppress(OSError), pipe:
        pipe.write(request)


def _with_rest_of(output: windows_pipe.OutputPipe, tail: bytes) -> bytes:
    """Return the end of the output, with that of LAST_OUTPUT_TIMEOUT seconds if a service keeps the pipe open."""
    ends = time.monotonic() + LAST_OUTPUT_TIMEOUT
    while True:
        late = time.monotonic() >= ends
        piece = output.read()
        if piece is None or late:
            break
        tail = (tail + piece)[-TAIL:]
        if not piece:
            time.sleep(PAUSES[0])
    return tail
