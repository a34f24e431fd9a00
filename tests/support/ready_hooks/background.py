# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Programs that run in a host while the test goes on: as transient units, which end with the host."""

from __future__ import annotations

from collections.abc import Sequence

from support.ready_hooks.workload_host import WorkloadHost
from support.wait import wait_until


def start(host: WorkloadHost, unit: str, command: Sequence[str]) -> None:
    host.run("systemd-run", "--quiet", "--collect", f"--unit={unit}", *command)


def kill(host: WorkloadHost, unit: str) -> None:
    """Kill all processes of the unit at once, and wait until it is gone."""
    host.run("systemctl", "kill", "--signal=KILL", unit, check=False)
    wait_until(lambda: not is_running(host, unit), f"the end of {unit}")


def is_running(host: WorkloadHost, unit: str) -> bool:
    return host.run("systemctl", "is-active", "--quiet", unit, check=False).returncode == 0
