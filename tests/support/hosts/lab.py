# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A lab of real hosts behind one 169.254.169.254.

    with Lab("ase", folder) as lab:
        host = lab.host("vm1")
        host.run(["systemctl", "status"])
        host.reboot()

The caller needs separate namespaces (see `UNSHARE_COMMAND`). When it ends, the kernel removes its
networks, mounts and processes. Two labs at the same time do not share anything.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from pathlib import Path
from types import TracebackType

from support.hosts import rootfs
from support.hosts.bridge import NAMESPACES, Bridge
from support.hosts.host import CGROUP_TREES, Host, remove_group

# The mounts of --mount are private; all processes end with the first one, even if that is killed.
UNSHARE_COMMAND = ("unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--")
STALE_AFTER = 3600


class Lab:
    """Creates hosts, and removes everything at the end.

    Args:
        prefix: of the names of control groups, which do not end with the namespaces.
        folder: mount point for the files of the hosts, which are in memory.
        root: root file system of all hosts; by default those in the cache, which are created if
            missing.
    """

    def __init__(self, prefix: str, folder: Path, root: Path | None = None) -> None:
        self._prefix, self._folder = prefix, folder / "lab"
        self._root = root
        self._own = f"{prefix}-{os.urandom(4).hex()}"
        self._hosts: dict[str, Host] = {}
        self._ends = contextlib.ExitStack()

    def __enter__(self) -> Lab:
        if reason := skip_reason_of_this_process():
            raise RuntimeError(reason)
        remove_stale_cgroups(self._prefix)
        with self._ends:
            self._mount_memory(NAMESPACES)
            self._mount_memory(self._folder)
            self._bridge = Bridge()
            self._ends.callback(self._bridge.remove)
            self._ends = self._ends.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ends.close()

    def host(self, name: str, suite: str = rootfs.SUITE) -> Host:
        """Return the host of this name; the first call creates and boots it with the Debian `suite`."""
        if name not in self._hosts:
            root = self._root or rootfs.ensure(suite)
            number = len(self._hosts) + 1
            address = self._bridge.attach(name, number)
            self._ends.callback(self._bridge.detach, name)
            made = Host(name, address, self._folder / name, root, f"{self._own}-{name}")
            self._ends.callback(made.remove)
            self._hosts[name] = made
            made.boot()
        return self._hosts[name]

    def _mount_memory(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "lab", str(folder)], check=True, timeout=30)
        self._ends.callback(subprocess.run, ["umount", "--lazy", str(folder)], check=True, timeout=30)


def skip_reason_of_this_process() -> str | None:
    """Return why this process cannot create a lab, or None."""
    if os.getpid() == 1 and os.geteuid() == 0 and sorted(os.listdir("/sys/class/net")) != []:
        return None
    return "hosts need namespaces of their own: make test-hosts, or the same command after " + " ".join(
        UNSHARE_COMMAND[:-1]
    )


def remove_stale_cgroups(prefix: str) -> None:
    """Remove the control groups of killed labs: old ones without processes."""
    for tree in CGROUP_TREES:
        for group in tree.glob(f"{prefix}-*"):
            with contextlib.suppress(OSError):
                if time.time() - group.stat().st_mtime > STALE_AFTER and is_empty(group):
                    remove_group(group)


def is_empty(group: Path) -> bool:
    return not any(file.read_text(encoding="utf-8") for file in group.rglob("cgroup.procs"))
