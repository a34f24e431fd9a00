# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Runs a command in namespaces of its own, with which its networks, mounts and processes end.

python -m support.hosts.namespaces COMMAND...

Ctrl-C lets the command end in its own way within `PATIENCE` seconds; SIGTERM, and the end of the process
that has started this one, kill it. The exit status is that of the command.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys

from support.hosts.control_groups import remove_stale_groups

# The mounts of --mount are private. All processes end with the first one, which ends with unshare, which
# ends with the thread that has started it: also by SIGKILL.
WITH_ITS_PARENT = ("setpriv", "--pdeathsig", "KILL", "--")
UNSHARE_COMMAND = (
    *WITH_ITS_PARENT,
    *("unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--"),
)
# the loopback device of a new namespace is down
WITH_LOOPBACK = 'ip link set lo up && exec "$@"'
PATIENCE = 30.0
# from linux/prctl.h
PR_SET_PDEATHSIG = 1


def skip_reason_of_this_process() -> str | None:
    """Return why this process is not in such namespaces, or None."""
    if os.getpid() == 1 and os.geteuid() == 0 and sorted(os.listdir("/sys/class/net")) != []:
        return None
    return "needs namespaces of its own: run it as root by python -m support.hosts.namespaces, see tests/system/hosts"


def run(command: list[str]) -> int:
    # the command, which holds the other end, may end after unshare
    reader, writer = os.pipe()
    process = subprocess.Popen([*UNSHARE_COMMAND, "sh", "-c", WITH_LOOPBACK, "sh", *command], pass_fds=[writer])
    os.close(writer)
    try:
        return process.wait()
    except KeyboardInterrupt:
        process.wait(PATIENCE)
        return 128 + signal.SIGINT
    finally:
        process.kill()
        os.read(reader, 1)
        remove_stale_groups()


def end(number: int, frame: object) -> None:
    """End this process, undisturbed by the second signal that the end of its parent may bring."""
    signal.signal(number, signal.SIG_IGN)
    sys.exit(128 + number)


def main() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    signal.signal(signal.SIGTERM, end)
    try:
        status = run(sys.argv[1:])
    except (KeyboardInterrupt, subprocess.TimeoutExpired):
        status = 128 + signal.SIGINT
    sys.exit(status)


if __name__ == "__main__":
    main()
