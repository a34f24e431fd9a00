# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The processes of one hook run: its supervisor, and all processes of its session and control group."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal

from hook_runner.clock import boot_id

# prefix of the names of units for hooks
UNITS = "azure-scheduled-events-hook-"
# file name of the supervisor
SUPERVISOR = b"supervisor.py"


def is_supervised(folder: str) -> bool:
    """Return True if the supervisor of the run in this folder lives. It holds the folder's lock until it ends."""
    try:
        lock = os.open(os.path.join(folder, "lock"), os.O_RDONLY)
    except OSError:
        return supervisor_without_folder(folder) is not None
    try:
        # shared: two processes that check at the same time must not take each other for the supervisor
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(lock)
    return False


def supervisor_pid(folder: str) -> int | None:
    """Return the process id of the run's supervisor, alive or dead, which is also its session id.

    None if no supervisor has begun since the host started.
    """
    try:
        with open(os.path.join(folder, "lock"), "rb") as file:
            boot, number = file.read(200).split(b"\n")[:2]
        return int(number) if boot == boot_id() else None
    except (OSError, ValueError):
        return supervisor_without_folder(folder)


def supervisor_without_folder(folder: str) -> int | None:
    """Return the process id of the living supervisor of a run whose folder was removed, or None."""
    if os.path.lexists(folder):
        return None
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
            if (
                os.path.basename(words[3]) == SUPERVISOR
                and words[4] == os.fsencode(folder)
                and os.stat("/proc/" + name).st_uid == os.geteuid()
            ):
                return int(name)
        except (OSError, IndexError):
            continue
    return None


def end_supervisor_without_folder(folder: str) -> None:
    """Send TERM to the supervisor of a run whose folder was removed; it then ends its hook."""
    supervisor = supervisor_without_folder(folder)
    if supervisor is not None:
        try:
            os.kill(supervisor, signal.SIGTERM)
        except OSError:
            pass  # it has ended


def cgroup_of(folder: str) -> str:
    """Return the folder of the run's own control group; "" if it has none."""
    try:
        with open(os.path.join(folder, "lock"), "rb") as file:
            cgroup = os.fsdecode(file.read(8192).split(b"\n")[2])
    except (OSError, IndexError):
        return ""
    return cgroup if os.path.basename(cgroup).startswith(UNITS) else ""


def hook_has_ended(folder: str) -> bool:
    """Return True if the supervisor is the only process of the run."""
    supervisor = supervisor_pid(folder)
    return supervisor is not None and _all_of(folder, supervisor) == {supervisor}


def kill_session(folder: str) -> bool:
    """Send KILL to all processes of the run's session and control group. Return False if there are none.

    If the supervisor is dead and its number is that of another session, only the control group gets the signal.
    """
    supervisor = supervisor_pid(folder)
    if supervisor is None:
        return False
    members = _all_of(folder, supervisor)
    if supervisor in members and not is_supervised(folder):
        # the session has ended, and another session has its number
        members = set(_of_cgroup(cgroup_of(folder)))
    for member in members:
        with contextlib.suppress(OSError):
            os.kill(member, signal.SIGKILL)
    return bool(members)


def _all_of(folder: str, supervisor: int) -> set[int]:
    return {*_session_pids(supervisor), *_of_cgroup(cgroup_of(folder))}


def _of_cgroup(cgroup: str) -> list[int]:
    """Return the processes of a control group and of the groups below it."""
    found = []
    for folder, _folders, _files in os.walk(cgroup) if cgroup else ():
        try:
            with open(os.path.join(folder, "cgroup.procs"), "rb") as file:
                found += [int(line) for line in file]
        except OSError:
            pass  # it was removed
    return [number for number in found if number]


def _session_pids(session: int) -> list[int]:
    """Return the living processes of a session."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                state, _parent, _group, number = file.read().rpartition(b")")[2].split()[:4]
        except (OSError, ValueError):
            continue
        if int(number) == session and state not in (b"Z", b"X"):
            found.append(int(name))
    return found
