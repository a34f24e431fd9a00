# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The role lets the daemon write facts in its sandbox; each test continues the one before."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.hosts.lab import Lab
from support.hosts.role_host import SERVICE, Azure, RoleHost, azure_of
from support.wait import wait_until

pytestmark = pytest.mark.all

FACTS = "/etc/ansible/facts.d/azure_scheduled_events.fact"


@pytest.fixture(scope="module")
def site(lab: Lab, folder: Path) -> RoleHost:
    return RoleHost(lab.host("facts"), folder, [])


@pytest.fixture(scope="module", autouse=True)
def azure(site: RoleHost, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Azure]:
    with azure_of({site.host.name: site.host}, tmp_path_factory.mktemp("azure")) as made:
        yield made


def facts(site: RoleHost) -> dict[str, Any]:
    file = site.host.file(FACTS)
    data: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    return data


def test_facts_are_written_from_the_sandbox(site: RoleHost, azure: Azure) -> None:
    site.must_apply(facts=True, install_packages=True)
    assert site.host.run(["stat", "--format=%a %U", FACTS]).stdout.splitlines() == ["644 root"]
    wait_until(lambda: facts(site).get("available"), "the facts", site.log)
    assert facts(site)["pending"] is False
    azure.announce("Reboot", "facts", hold=True)
    wait_until(lambda: facts(site)["pending"], "the fact", site.log)
    again = site.apply(facts=True, install_packages=True)
    assert (again.status, again.changed_tasks) == (0, []), again.text


def test_systemd_marks_the_facts_of_a_killed_daemon(site: RoleHost) -> None:
    site.must_apply(facts=True, unit_overrides="[Service]\nRestart=no")
    wait_until(lambda: facts(site).get("stale") is False and site.watches(), "the facts", site.log)
    site.host.run(["systemctl", "kill", "--signal=KILL", "--kill-who=main", SERVICE])
    wait_until(lambda: facts(site)["stale"] is True, "the mark", site.log)
    assert facts(site)["pending"] is True
    site.host.run(["systemctl", "start", SERVICE])
    wait_until(lambda: facts(site)["stale"] is False, "new facts", site.log)


def test_facts_that_are_turned_off_are_removed(site: RoleHost) -> None:
    site.must_apply()
    assert site.host.run(["ls", FACTS], check=False).stdout == ""


def test_the_removal_leaves_no_facts(site: RoleHost) -> None:
    site.must_apply(facts=True)
    wait_until(lambda: facts(site), "the facts", site.log)
    site.must_apply(state="absent")
    found = site.host.run(
        ["find", "/etc/azure-scheduled-events", FACTS, "/var/lib/azure-scheduled-events"], check=False
    )
    assert sorted(Path(path).name for path in found.stdout.split()) == ["azure-scheduled-events", "journal.db"]
