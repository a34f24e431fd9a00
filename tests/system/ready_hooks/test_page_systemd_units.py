# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""docs/ready-hooks/systemd-units.md as printed, through one event."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from support.ready_hooks import page
from support.ready_hooks.printed_play import printed_play
from support.ready_hooks.workload_host import WorkloadHost

pytestmark = pytest.mark.all

SERVICE = "[Service]\nExecStart=sleep infinity\n"
FILES = {
    "backup.timer": "[Timer]\nOnCalendar=2099-01-01\n",
    "backup.service": SERVICE,
    "worker@.service": SERVICE,
    "queue.service": SERVICE,
}


def states(host: WorkloadHost, units: list[str]) -> set[str]:
    return {host.run("systemctl", "is-active", unit, check=False).stdout.strip() for unit in units}


def test_printed_play_stops_the_units_for_an_event(
    workload_host: Callable[[str], WorkloadHost], tmp_path: Path
) -> None:
    host = workload_host("web1")
    (entry,) = page.entries("systemd-units")
    for name, text in FILES.items():
        host.write(f"/etc/systemd/system/{name}", text)
    host.run("systemctl", "daemon-reload")
    host.run("systemctl", "start", *entry["units"])
    with printed_play("systemd-units", tmp_path, host) as play:
        play.apply()
        play.prepare("Reboot")
        assert states(host, entry["units"]) == {"inactive"}
        play.recover()
        assert states(host, entry["units"]) == {"active"}
        assert host.record("systemd-units") is None
    host.run("systemctl", "stop", *entry["units"])
