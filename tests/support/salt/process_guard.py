# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Run a command until it exits or standard input is closed, and end all its processes.

    python process_guard.py COMMAND [ARGUMENT...]

The process that starts this holds a pipe to its standard input. The kernel closes that pipe when the
holder exits for any reason. Then all descendants of the command are killed, in whatever sessions and
groups. SIGTERM is forwarded to the command.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36


def main() -> None:
    # orphans of the command become children of this process, which can then end and reap them
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    child = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL).pid
    signal.signal(signal.SIGTERM, lambda *_signal: os.kill(child, signal.SIGTERM))
    threading.Thread(target=hold, args=(child,), daemon=True).start()
    while os.wait()[0] != child:
        pass
    end_children()


def hold(child: int) -> None:
    while os.read(0, 1024):
        pass
    for pid in [child, *children(child)]:
        os.kill(pid, signal.SIGKILL)


def end_children() -> None:
    """End all children. The children of an ended child become those of this process; repeat until there are none."""
    while found := children(os.getpid()):
        for pid in found:
            os.kill(pid, signal.SIGKILL)
        os.wait()


def children(pid: int) -> list[int]:
    """Return the children of all threads of a process; ignore threads that end during the search."""
    found = []
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                found += [int(word) for word in (thread / "children").read_text().split()]
    return found


if __name__ == "__main__":
    main()
