# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

from __future__ import annotations

from collections.abc import Callable

import pytest

from support.hosts.role_host import RoleHost
from support.ready_hooks.workload_host import LIBRARY, WorkloadHost

pytestmark = pytest.mark.all

HOOKS = "/etc/azure-scheduled-events/hooks.d"
UNIT = "[Service]\nExecStart=sleep infinity\n"
TEXTS = ['it\'s $HOME "quoted"', "two\nlines", "ünïcode ☃ `id`", "back\\slash {{ x }}"]


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
    return RoleHost(workload.host, tmp_path_factory.mktemp("role"), hooks=())


def installed(site: RoleHost) -> list[str]:
    folder = site.host.file(HOOKS)
    return sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())


def units(name: str, *names: str, **more: object) -> dict[str, object]:
    return {"use": "systemd-units", "name": name, "units": list(names), **more}


def test_list_becomes_hooks_that_recover_in_reverse_order(workload: WorkloadHost, site: RoleHost) -> None:
    hooks = [units("one", "first.service", settings={"timeout": "2m"}), units("two", "second.service")]
    first_check = site.must_apply("--check", ready_hooks=hooks)
    assert not site.host.file(LIBRARY).exists() and first_check.changed > 0
    site.must_apply(ready_hooks=hooks)
    assert installed(site) == ["prepare/21-one", "prepare/22-two", "recover/78-two", "recover/79-one"]
    settings = site.host.file("/etc/azure-scheduled-events/config.yml").read_text(encoding="utf-8")
    assert "prepare/21-one:\n    timeout: 2m" in settings and "recover/79-one:\n    timeout: 2m" in settings
    again = site.must_apply(ready_hooks=hooks)
    assert again.changed == 0, again.changed_tasks
    tried = site.ask("try", "prepare/21-one")
    assert tried.returncode == 0, tried.stdout + tried.stderr
    assert workload.run("systemctl", "is-active", "first.service", check=False).stdout.strip() == "inactive"
    assert site.ask("try", "recover/79-one").returncode == 0
    assert workload.run("systemctl", "is-active", "first.service").stdout.strip() == "active"


def test_file_of_a_removed_entry_is_removed_and_other_hooks_stay(site: RoleHost) -> None:
    own = {"stage": "prepare", "name": "10-own", "content": "#!/bin/sh\n# azure-scheduled-events: answers check\n"}
    one, two = units("one", "first.service"), units("two", "second.service")
    site.must_apply(ready_hooks=[one, two], hooks=[own])
    site.must_apply(ready_hooks=[two], hooks=[])
    assert installed(site) == ["prepare/10-own", "prepare/21-two", "recover/79-two"]
    site.must_apply(ready_hooks=[], hooks=[])
    assert installed(site) == ["prepare/10-own"]


def test_hooks_of_a_prepared_host_cannot_be_removed(workload: WorkloadHost, site: RoleHost) -> None:
    one, two = units("one", "first.service"), units("two", "second.service")
    site.must_apply(ready_hooks=[one, two], hooks=[])
    before = installed(site)
    assert site.ask("try", "prepare/21-one").returncode == 0
    renamed = {**one, "name": "other"}
    for refused in (site.apply(ready_hooks=[two]), site.apply(ready_hooks=[renamed, two]), site.apply(state="absent")):
        assert refused.status != 0 and "one.json" in refused.text, refused.text
        assert installed(site) == before
    site.must_apply(ready_hooks=[two, one])
    assert site.ask("try", "recover/78-one").returncode == 0
    assert workload.run("systemctl", "is-active", "first.service").stdout.strip() == "active"
    site.must_apply(ready_hooks=[two])


def test_hook_that_would_fail_changes_nothing_on_the_host(site: RoleHost) -> None:
    site.must_apply(ready_hooks=[units("one", "first.service")])
    before = installed(site)
    applied = site.apply(ready_hooks=[units("one", "frist.service")])
    assert applied.status != 0 and "frist.service: systemd has no such unit" in applied.text
    applied = site.apply(ready_hooks=[{"use": "systemd-units", "unit": "first.service"}])
    assert applied.status != 0 and "did you mean units?" in applied.text
    assert installed(site) == before
    # the play installs the workload later
    site.must_apply(ready_hooks=[units("one", "later.service")], check_hooks=False)
    assert "later.service" in site.ask("check", "--offline", "--hooks").stdout
    assert site.ask("check", "--offline").returncode == 0


def test_absent_removes_the_library(site: RoleHost) -> None:
    site.must_apply(ready_hooks=[units("one", "first.service")])
    assert site.host.file(f"{LIBRARY}/haproxy").exists()
    site.must_apply(state="absent", ready_hooks=[units("one", "first.service")])
    assert not site.host.file(LIBRARY).exists()
