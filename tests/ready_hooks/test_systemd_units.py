# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The ready hook systemd-units with real units."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from support.ready_hooks.workload_host import WorkloadHost

UNIT = "[Service]\nExecStart=sleep infinity\n"
OPTIONS = {"units": ["first.service", "second.service"]}


@pytest.fixture
def host(workload_host: Callable[[str], WorkloadHost]) -> Iterator[WorkloadHost]:
    host = workload_host("web1")
    for unit in OPTIONS["units"]:
        host.write(f"/etc/systemd/system/{unit}", UNIT)
    host.run("systemctl", "daemon-reload")
    host.run("systemctl", "start", *OPTIONS["units"])
    yield host
    host.run("systemctl", "stop", *OPTIONS["units"])


def states(host: WorkloadHost) -> list[str]:
    return [host.run("systemctl", "is-active", unit, check=False).stdout.strip() for unit in OPTIONS["units"]]


@pytest.mark.short
def test_recover_starts_only_the_units_that_prepare_stopped(host: WorkloadHost) -> None:
    host.run("systemctl", "stop", "second.service")
    assert host.hook("systemd-units", "prepare", OPTIONS).returncode == 0
    assert states(host) == ["inactive", "inactive"]
    assert host.record("systemd-units") == {"units": ["first.service"]}
    assert host.hook("systemd-units", "recover", OPTIONS).returncode == 0
    assert states(host) == ["active", "inactive"]
    assert host.record("systemd-units") is None


def test_check_names_a_unit_that_does_not_exist(host: WorkloadHost) -> None:
    found = host.hook("systemd-units", "check", {"units": ["frist.service"]})
    assert (found.returncode, "frist.service" in found.stderr) == (1, True)
