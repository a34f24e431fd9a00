# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""Runs one program with a time limit, on POSIX systems, and keeps its two outputs apart."""

from __future__ import annotations

import os
import signal
import subprocess
from typing import Mapping, NamedTuple, Sequence


class ProgramResult(NamedTuple):
    """Exit code, standard output and standard error of a program that has ended."""

    code: int
    output: str
    errors: str


def run_program(command: Sequence[str], environment: Mapping[str, str], timeout: float) -> ProgramResult | None:
    """Run a program in "/" until its end; kill its process group and return None at the timeout.

    ``environment`` has all variables of the program; ``timeout`` is in seconds. The function raises
    OSError if the program cannot be started.
    """
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd="/",
        env=environment,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,
    ) as process:
        try:
            output, errors = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            # without another read: a process that has left the group may keep the outputs open
            os.killpg(process.pid, signal.SIGKILL)
            return None
        except BaseException:
            # a job is ended by an exception
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return ProgramResult(process.returncode, output, errors)
