# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Run lanes of checks and tests side by side, and end every process that they started.

    python -m tools.lanes 3 lint unit system salt

The number says how many lanes run at a time. A lane is a target of the Makefile: some sessions of the noxfile, one
after the other. make prints the output of a lane when it ends. The tests start daemons, sshd, Salt masters and
containers in sessions of their own, which no signal to a process group reaches. Therefore this process adopts every
orphan (Linux: PR_SET_CHILD_SUBREAPER), and ends whatever is left when the lanes have ended or a signal arrives.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil

FOLDER = Path(".cache", "lanes")
NEED_ROOT = ("system", "salt", "ready-hooks", "labs")
PR_SET_CHILD_SUBREAPER = 36
GRACE = 20.0  # seconds from SIGTERM to SIGKILL: hosts, and root file systems that are half made, are removed
ENDING = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)


def main(at_a_time: str, *names: str) -> int:
    """Run the lanes and return the exit status: 0, 1 if one failed, 75 if another run goes on, 130 after a signal."""
    lanes = [name for name in names if os.geteuid() == 0 or not name.startswith(NEED_ROOT)]
    with only_run() as other:
        if other:
            print(f"{os.getcwd()}: {other} runs its tests; wait for its end, or end it", file=sys.stderr)
            return 75
        adopt_orphans()
        for lane in names:
            (FOLDER / f"{lane}.json").unlink(missing_ok=True)
        print(f"{', '.join(lanes)}: {at_a_time} at a time; each prints its output when it ends", flush=True)
        start = time.monotonic()
        status = run(["make", "--no-print-directory", f"-j{at_a_time}", "-Otarget", "-k", *lanes])
        print_times(lanes, time.monotonic() - start)
        if len(lanes) < len(names):
            print(f"left out, because only root can run them: {', '.join(sorted({*names} - {*lanes}))}")
    return status


@contextlib.contextmanager
def only_run() -> Iterator[str]:
    """Hold the lock of this checkout, and yield nothing; or yield which process holds it."""
    try:
        FOLDER.mkdir(parents=True, exist_ok=True)
        opened = (FOLDER / "lock").open("a+")
    except OSError as error:
        sys.exit(f"{FOLDER}: {error.strerror}; run it as the user who made .cache, or remove it")
    with opened as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            yield lock.read() or "another process"
            return
        lock.truncate(0)
        lock.write(f"process {os.getpid()} (since {time.strftime('%H:%M')})")
        lock.flush()
        yield ""


def adopt_orphans() -> None:
    """Make this process the parent of its orphaned descendants."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


def run(command: Sequence[str]) -> int:
    """Run a command, and return 0 or 1; or 130 after a signal. All descendants end with it."""
    for number in ENDING:
        # nohup ignores SIGHUP
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)
    # the terminal sends Ctrl-C to its process group; here this process alone decides what it ends, and in which order
    try:
        child = subprocess.Popen(command, start_new_session=True)
        return 1 if wait_for(child) else 0
    except KeyboardInterrupt:
        print("interrupted", flush=True)
        return 130
    finally:
        end_descendants()


def wait_for(child: subprocess.Popen[bytes]) -> int:
    """Wait until the child ends, collect the orphans that end before, and return the status of the child."""
    while True:
        ended, status = os.wait()
        if ended == child.pid:
            child.returncode = os.waitstatus_to_exitcode(status)
            return child.returncode


def end_descendants() -> None:
    """Send SIGTERM to all descendants, and SIGKILL to those that are left, until there are none."""
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)
    for process in (descendants := psutil.Process().children(recursive=True)):
        with contextlib.suppress(psutil.NoSuchProcess):
            process.terminate()
    psutil.wait_procs(descendants, GRACE)
    while descendants := psutil.Process().children(recursive=True):
        for process in descendants:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(descendants, 1)


def print_times(lanes: Sequence[str], wall: float) -> None:
    """Print the wall and CPU seconds of each lane, as its nox has measured them, and the CPU seconds of all."""
    total = 0
    for lane in lanes:
        file = FOLDER / f"{lane}.json"
        times = {"wall": 0, "cpu": 0, "left_out": [], **(json.loads(file.read_text()) if file.exists() else {})}
        total += times["cpu"]
        print(f"{lane:<20} {times['wall']:5} s   {times['cpu']:5} CPU s")
        for reason in times["left_out"]:
            print(f"left out of {lane}: {reason}")
    print(f"{'all':<20} {wall:5.0f} s   {total:5} CPU s", flush=True)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
