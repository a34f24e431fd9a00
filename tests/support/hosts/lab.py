# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A lab of real hosts behind one 169.254.169.254.

    with Lab(folder) as lab:
        host = lab.host("vm1")
        host.run(["systemctl", "status"])
        host.reboot()

The caller needs separate namespaces (see namespaces.py); elsewhere its test is skipped. When it
ends, the kernel removes its networks, mounts and processes. Two labs at the same time, which need
two processes, do not share anything.
"""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

from support import simulator_process
from support.hosts import rootfs
from support.hosts.apply_impact import Impacts
from support.hosts.bridge import IMDS, NAMESPACES, Bridge
from support.hosts.control_groups import groups_of_a_lab, remove_stale_groups
from support.hosts.host import Host
from support.hosts.namespaces import skip_reason_of_this_process
from support.simulator_process import Simulator


class Lab:
    """Creates hosts, and removes everything at the end.

    ``folder`` is the mount point for the files of the hosts, which are in memory.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "lab"
        self._hosts: dict[str, Host] = {}
        self._ends = contextlib.ExitStack()

    def __enter__(self) -> Lab:
        if reason := skip_reason_of_this_process():
            pytest.skip(reason)
        remove_stale_groups()
        with self._ends:
            self._groups = self._ends.enter_context(groups_of_a_lab())
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
            root = rootfs.made(suite)
            number = len(self._hosts) + 1
            address = self._bridge.attach(name, number)
            self._ends.callback(self._bridge.detach, name)
            made = Host(name, address, self._folder / name, root, [group / name for group in self._groups])
            self._ends.callback(made.remove)
            self._hosts[name] = made
            made.boot()
        return self._hosts[name]

    def _mount_memory(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "lab", str(folder)], check=True, timeout=30)
        self._ends.callback(subprocess.run, ["umount", "--lazy", str(folder)], check=True, timeout=30)


def start_simulator(impacts: Impacts, *words: str, knobs: Mapping[str, Any] = {}, **scenario: Any) -> Simulator:
    """Start the simulator of an availability set of hosts at 169.254.169.254, without a rate limit.

    ``words`` are further arguments, and ``scenario`` further keys of the scenario.
    """
    whole = {
        "groups": {"set": {"kind": "availability_set", "vms": {name: {} for name in impacts.hosts}}},
        "knobs": {"rate_limit": 0, **knobs},
        "impact": impacts.commands,
        **scenario,
    }
    sources = [word for name, host in impacts.hosts.items() for word in ("--source", f"{name}={host.address}")]
    return simulator_process.start(whole, [*words, *sources], listen=f"{IMDS}:80")
