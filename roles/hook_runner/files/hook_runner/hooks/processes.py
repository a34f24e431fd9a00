# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The processes of one hook run: whether its keeper lives, and ending all that belongs to it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal

from hook_runner.clock import boot_id

# how the names of units for hooks begin
UNITS = "azure-scheduled-events-hook-"
# file names of the program that runs a hook: today's, and that of 0.1.0, which may run through an
# upgrade
SUPERVISORS = (b"supervisor.py", b"keeper.py")


def is_supervised(folder: str) -> bool:
    """Whether the keeper of the run in this folder lives: it holds the folder's lock until it ends, however it ends."""
    try:
        lock = os.open(os.path.join(folder, "lock"), os.O_RDONLY)
    except OSError:
        return supervisor_without_folder(folder) is not None
    try:
        # shared, so that two who look at the same time do not take each other for the keeper
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(lock)
    return False


def supervisor_pid(folder: str) -> int | None:
    """The process id that the run's keeper has or had, which is its session's number; None where none began since the host started."""
    try:
        with open(os.path.join(folder, "lock"), "rb") as file:
            boot, number = file.read(200).split(b"\n")[:2]
        return int(number) if boot == boot_id() else None
    except (OSError, ValueError):
        return supervisor_without_folder(folder)


def supervisor_without_folder(folder: str) -> int | None:
    """Return the process id of the living keeper of a run whose folder was removed; None where the folder is there, or none lives."""
    if os.path.lexists(folder):
        return None
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
            if (
                os.path.basename(words[3]) in SUPERVISORS
                and words[4] == os.fsencode(folder)
                and os.stat("/proc/" + name).st_uid == os.geteuid()
            ):
                return int(name)
        except (OSError, IndexError):
            continue
    return None


def end_supervisor_without_folder(folder: str) -> None:
    """TERM to the keeper of a run whose folder was removed, upon which it ends its hook."""
    keeper = supervisor_without_folder(folder)
    if keeper is not None:
        try:
            os.kill(keeper, signal.SIGTERM)
        except OSError:
            pass  # it has ended


def cgroup_of(folder: str) -> str:
    """Return the control group that the run has for itself, as a folder; "" where it has none."""
    try:
        with open(os.path.join(folder, "lock"), "rb") as file:
            cgroup = os.fsdecode(file.read(8192).split(b"\n")[2])
    except (OSError, IndexError):
        return ""
    return cgroup if os.path.basename(cgroup).startswith(UNITS) else ""


def hook_has_ended(folder: str) -> bool:
    """Return True if the run's keeper is the only process of the run."""
    keeper = supervisor_pid(folder)
    return keeper is not None and _all_of(folder, keeper) == {keeper}


def kill_session(folder: str) -> bool:
    """KILL for all processes of the run's session and control group, the keeper too; False where there are none (any more)."""
    keeper = supervisor_pid(folder)
    if keeper is None:
        return False
    members = _all_of(folder, keeper)
    if keeper in members and not is_supervised(folder):
        # all of that session have ended, and its number has been given to another one since
        members = set(_of_cgroup(cgroup_of(folder)))
    for member in members:
        with contextlib.suppress(OSError):
            os.kill(member, signal.SIGKILL)
    return bool(members)


def _all_of(folder: str, keeper: int) -> set[int]:
    return {*_session_pids(keeper), *_of_cgroup(cgroup_of(folder))}


def _of_cgroup(cgroup: str) -> list[int]:
    """The processes of a control group and of those below it."""
    found = []
    for folder, _folders, _files in os.walk(cgroup) if cgroup else ():
        try:
            with open(os.path.join(folder, "cgroup.procs"), "rb") as file:
                found += [int(line) for line in file]
        except OSError:
            pass  # it was removed
    return [number for number in found if number]


def _session_pids(session: int) -> list[int]:
    """The living processes of a session."""
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
