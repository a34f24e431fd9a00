# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The role hook_runner with ready hooks; each test continues from the one before, since each application costs much."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from support.hosts.role_host import RoleHost
from support.ready_hooks.workload_host import LIBRARY, WorkloadHost

pytestmark = pytest.mark.all

HOOKS = "/etc/azure-scheduled-events/hooks.d"
UNIT = "[Service]\nExecStart=sleep infinity\n"
OWN = {"stage": "prepare", "name": "10-own", "content": "#!/bin/sh\n# azure-scheduled-events: answers check\n"}


@pytest.fixture(scope="module")
def workload(workload_host: Callable[[str], WorkloadHost]) -> WorkloadHost:
    host = workload_host("role1")
    for unit in ("first.service", "second.service"):
        host.write(f"/etc/systemd/system/{unit}", UNIT)
    host.run("systemctl", "daemon-reload")
    host.run("systemctl", "start", "first.service", "second.service")
    return host


@pytest.fixture(scope="module")
def site(workload: WorkloadHost, tmp_path_factory: pytest.TempPathFactory) -> RoleHost:
    # the role installs the library
    workload.run("rm", "-rf", LIBRARY)
    return RoleHost(workload.host, tmp_path_factory.mktemp("role"), hooks=[OWN])


def installed(site: RoleHost) -> list[str]:
    folder = site.host.file(HOOKS)
    return sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())


def units(name: str, *names: str, **more: object) -> dict[str, object]:
    return {"use": "systemd-units", "name": name, "units": list(names), **more}


ONE, TWO = units("one", "first.service", settings={"timeout": "2m"}), units("two", "second.service")


def is_active(workload: WorkloadHost) -> list[str]:
    """Return the states of the two units."""
    return workload.run("systemctl", "is-active", "first.service", "second.service", check=False).stdout.split()


def test_list_becomes_hooks_that_recover_in_reverse_order(workload: WorkloadHost, site: RoleHost) -> None:
    first_check = site.must_apply("--check", ready_hooks=[ONE, TWO])
    assert not site.host.file(LIBRARY).exists() and first_check.changed > 0
    site.must_apply(ready_hooks=[ONE, TWO])
    assert installed(site) == [
        *("prepare/10-own", "prepare/21-one", "prepare/22-two"),
        *("recover/78-two", "recover/79-one"),
    ]
    settings = site.host.file("/etc/azure-scheduled-events/config.yml").read_text(encoding="utf-8")
    assert "prepare/21-one:\n    timeout: 2m" in settings and "recover/79-one:\n    timeout: 2m" in settings
    again = site.must_apply(ready_hooks=[ONE, TWO])
    assert again.changed == 0, again.changed_tasks
    for hook in ("prepare/21-one", "prepare/22-two"):
        tried = site.ask("try", hook)
        assert tried.returncode == 0, tried.stdout + tried.stderr
    assert is_active(workload) == ["inactive", "inactive"]


def test_hooks_of_a_prepared_host_cannot_be_removed(workload: WorkloadHost, site: RoleHost) -> None:
    before = installed(site)
    # of two prepared hooks one is removed, and one has another name
    applied = site.apply(ready_hooks=[{**TWO, "name": "other"}])
    assert applied.status != 0 and "one.json" in applied.text and "two.json" in applied.text, applied.text
    assert installed(site) == before
    applied = site.apply(state="absent")
    assert applied.status != 0 and "one.json" in applied.text, applied.text
    assert installed(site) == before
    site.must_apply(ready_hooks=[TWO, ONE])
    for hook in ("recover/78-one", "recover/79-two"):
        assert site.ask("try", hook).returncode == 0
    assert is_active(workload) == ["active", "active"]


def test_hook_that_would_fail_changes_nothing_on_the_host(site: RoleHost) -> None:
    before = installed(site)
    applied = site.apply(
        ready_hooks=[units("one", "frist.service"), {"use": "systemd-units", "name": "two", "unit": "second.service"}]
    )
    assert applied.status != 0 and "frist.service: systemd has no such unit" in applied.text
    assert "did you mean units?" in applied.text
    assert installed(site) == before


def test_file_of_a_removed_entry_is_removed_and_other_hooks_stay(site: RoleHost) -> None:
    # the play installs the workload later
    site.must_apply(ready_hooks=[units("one", "later.service")], hooks=[], check_hooks=False)
    assert installed(site) == ["prepare/10-own", "prepare/21-one", "recover/79-one"]
    assert "later.service" in site.ask("check", "--offline", "--hooks").stdout
    assert site.ask("check", "--offline").returncode == 0
    site.must_apply(ready_hooks=[], hooks=[])
    assert installed(site) == ["prepare/10-own"]


def test_absent_removes_the_library(site: RoleHost) -> None:
    assert site.host.file(f"{LIBRARY}/haproxy").exists()
    site.must_apply(state="absent", ready_hooks=[ONE])
    assert not site.host.file(LIBRARY).exists()
