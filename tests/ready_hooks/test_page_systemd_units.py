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


@pytest.mark.short
def test_printed_play_stops_the_units_for_an_event(
    workload_host: Callable[[str], WorkloadHost], tmp_path: Path
) -> None:
    host = workload_host("web1")
    (units,) = {tuple(entry["units"]) for entry in page.entries("systemd-units")}
    for unit in units:
        host.write(f"/etc/systemd/system/{unit}", "[Service]\nExecStart=sleep infinity\n")
    host.run("systemctl", "daemon-reload")
    host.run("systemctl", "start", *units)
    with printed_play("systemd-units", tmp_path, host) as play:
        play.apply()
        play.prepare("Reboot")
        assert [host.run("systemctl", "is-active", unit, check=False).stdout.strip() for unit in units] == [
            "inactive" for _unit in units
        ]
        play.recover()
        assert [host.run("systemctl", "is-active", unit, check=False).stdout.strip() for unit in units] == [
            "active" for _unit in units
        ]
        assert host.record("systemd-units") is None
    host.run("systemctl", "stop", *units)
