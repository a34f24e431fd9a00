# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Identifies the process of a maintenance run on a controller, and finds whether that of another run has ended."""

from __future__ import annotations

import getpass
import multiprocessing
import os
import re
import socket
import subprocess
import typing as t

from ansible.errors import AnsibleError

# inode of the first PID namespace of a Linux machine: only there does a reboot end all processes
_FIRST_PID_NAMESPACE = "pid:[4026531836]"
_DEAD_STATES = ("Z", "X")
_HAS_PROC = os.path.exists("/proc/self/stat")


def this_run() -> dict[str, t.Any]:
    """Return the identity of this run of ansible-playbook, which is the same in all of its tasks.

    Raises AnsibleError in a worker whose run has ended: a note of this worker would belong to a run whose end no other
    run can find out.
    """
    pid = _pid_of_run()
    start = _start_of(pid)
    if not start and _HAS_PROC:
        raise AnsibleError(f"process {pid}: this run of ansible-playbook has ended; its workers begin no further work")
    here = _controller()
    run_id = re.sub(r"[^\w.-]", "_", f"{here['host']}-{pid}-{start}")
    return {"id": run_id, "user": _user(), "pid": pid, "start": start, **here}


def has_ended(run: t.Mapping[str, t.Any]) -> bool:
    """Return True if the process of the run has surely ended; always False for a run on another controller."""
    here = _controller()
    if (
        run.get("host") != here["host"]
        or run.get("pid_namespace") != here["pid_namespace"]
        or not isinstance(run.get("pid"), int)
    ):
        return False
    if run.get("boot") != here["boot"]:
        is_same_machine = bool(here["machine"]) and run.get("machine") == here["machine"]
        return is_same_machine and here["pid_namespace"] == _FIRST_PID_NAMESPACE
    return bool(run.get("start")) and _start_of(run["pid"]) != run["start"]


def _controller() -> dict[str, str]:
    """Return where the processes of this controller are counted: machine, boot and namespace."""
    return {
        "host": socket.gethostname(),
        "boot": _text_of("/proc/sys/kernel/random/boot_id"),
        "machine": _text_of("/etc/machine-id"),
        "pid_namespace": _pid_namespace(),
    }


def _pid_of_run() -> int:
    """Return the id of the ansible-playbook process that started this worker, even if it has ended."""
    parent = multiprocessing.parent_process()
    return os.getpid() if parent is None or parent.pid is None else parent.pid


def _start_of(pid: int) -> str:
    """Return the start time of the process in the system's own form, or "" if it has ended or is unknown."""
    stat = _text_of(f"/proc/{pid}/stat")
    if stat:
        # the second field is a name in parentheses, which may contain any character
        fields = stat.rpartition(")")[2].split()
        return "" if fields[0] in _DEAD_STATES else fields[19]
    if _HAS_PROC:
        return ""
    try:
        ps = subprocess.run(
            ["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return ps.stdout.strip()


def _text_of(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""


def _pid_namespace() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())
