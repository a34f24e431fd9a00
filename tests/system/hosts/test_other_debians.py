# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The role hook_runner on the oldest and the newest Debian: installation, an event with a reboot, and removal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.hosts.lab import Lab
from support.hosts.role_host import LIFE, SERVICE, START, Azure, RoleHost, azure_of
from support.hosts.rootfs import OTHER_SUITES
from support.wait import wait_until

pytestmark = pytest.mark.all

# the record of the open maintenance
OPEN = "/var/lib/azure-scheduled-events/hook-runner/maintenance.json"


@pytest.fixture(scope="module", params=OTHER_SUITES)
def site(request: pytest.FixtureRequest, lab: Lab, folder: Path) -> RoleHost:
    return RoleHost(lab.host(f"on-{request.param}", request.param), folder)


@pytest.fixture(scope="module")
def azure(site: RoleHost, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Azure]:
    with azure_of({site.host.name: site.host}, tmp_path_factory.mktemp("azure")) as made:
        yield made


def test_role_installs_and_its_second_run_changes_nothing(site: RoleHost, azure: Azure) -> None:
    site.must_apply(install_packages=True)
    wait_until(site.watches, "the daemon polls", site.log)
    second = site.apply(install_packages=True)
    assert (second.status, second.changed_tasks, second.changed) == (0, [], 0), second.text
    assert site.host.run(["systemd-analyze", "verify", SERVICE]).stderr == ""


def test_reboot(site: RoleHost, azure: Azure) -> None:
    before = site.host.boot_id
    event = azure.announce("Reboot", site.host.name)
    azure.interrupt(event, site, "reboot")
    azure.advance(LIFE)
    site.wait_for("ended", "recover")
    assert [mark.boot_id for mark in site.markers("ended", "prepare")] == [before] and site.began("prepare") == 1
    (recovered,) = site.markers("ended", "recover")
    assert (recovered.boot_id, recovered.outcome) == (site.host.boot_id, "completed")
    assert (site.began("recover"), azure.approvals(event)) == (1, 1)


def test_daemon_that_is_killed_finds_its_hook_again(site: RoleHost, azure: Azure) -> None:
    site.reset()
    event = azure.announce_and_hold(site)
    process = site.process()
    site.host.run(["systemctl", "kill", "--signal=KILL", "--kill-who=main", SERVICE])
    wait_until(lambda: site.process() not in ("0", process) and site.watches(), "another daemon polls", site.log)
    site.release("prepare")
    azure.wait_for_approval(event, site)
    assert (site.began("prepare"), site.ended("prepare"), azure.approvals(event)) == (1, 1, 1)
    assert site.began("started") == 0


def test_absent_leaves_nothing_but_the_records_and_ends_hooks_that_run(site: RoleHost, azure: Azure) -> None:
    site.hold("started")
    azure.advance(START)
    site.wait_for("began", "started")
    refused = site.apply(state="absent")
    assert refused.status != 0 and OPEN in refused.text, refused.text
    site.host.run(["systemctl", "stop", SERVICE])
    site.host.run(["rm", OPEN])
    site.must_apply(state="absent")
    wait_until(lambda: site.host.run(["pgrep", "--full", "hooks.d"], check=False).returncode == 1, "no hook runs")
    found = site.host.run(
        ["find", "/etc", "/usr/local", "/var/lib", "/run", "-name", "*azure-scheduled-events*"]
    ).stdout.split()
    assert found == ["/var/lib/azure-scheduled-events"]
