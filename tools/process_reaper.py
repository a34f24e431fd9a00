# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Run a function in a child process, and end all of its descendants with it.

The tests start daemons, sshd, Salt masters and containers in sessions of their own. A signal to the
runner or to its process group does not reach them. The parent process here adopts every orphan
(Linux: PR_SET_CHILD_SUBREAPER), reaps it, and ends whatever is left when the run ends.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable

import psutil

PR_SET_CHILD_SUBREAPER = 36
RUNNER_GRACE = 4.0  # seconds from the signal until SIGKILL
KILL_LIMIT = 5.0  # seconds
ENDING = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
WATCHED = (signal.SIGCHLD, *ENDING)


def run_and_reap(function: Callable[[], int]) -> int:
    """Run `function` in a child process and return its exit status.

    SIGHUP, SIGINT and SIGTERM are passed to the child as SIGTERM. All descendants are killed when
    the child has ended, at the latest `RUNNER_GRACE` seconds after the signal.
    """
    adopt_orphans()
    signal.pthread_sigmask(signal.SIG_BLOCK, WATCHED)
    sys.stdout.flush()
    sys.stderr.flush()
    runner = os.fork()
    if runner == 0:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent sends SIGTERM, also for Ctrl-C
        signal.pthread_sigmask(signal.SIG_UNBLOCK, WATCHED)
        return function()
    try:
        return wait_for(runner)
    finally:
        kill_descendants(KILL_LIMIT)


def adopt_orphans() -> None:
    """Make this process the parent of its orphaned descendants."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


def wait_for(runner: int) -> int:
    """Wait for the runner, pass signals to it, and reap all other children during this time."""
    deadline = float("inf")
    while True:
        status = reap(runner)
        if status is not None:
            return os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)
        received = signal.sigtimedwait(WATCHED, 1.0)
        if received and received.si_signo in ENDING:
            deadline = min(deadline, time.monotonic() + RUNNER_GRACE)
            os.kill(runner, signal.SIGTERM)
        if time.monotonic() >= deadline:
            os.kill(runner, signal.SIGKILL)


def reap(runner: int) -> int | None:
    """Reap all children that have ended; return the wait status of the runner if it is among them."""
    found = None
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            if pid == runner:
                found = status
    return found


def kill_descendants(limit: float) -> None:
    """Send SIGKILL to all descendants until there are none, for at most `limit` seconds."""
    deadline = time.monotonic() + limit
    while time.monotonic() < deadline:
        reap(0)
        descendants = psutil.Process().children(recursive=True)
        if not descendants:
            return
        for process in descendants:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        time.sleep(0.05)
