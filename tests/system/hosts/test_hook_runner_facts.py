# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The role installs the executable fact, and removes it; each test continues the one before."""

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
    found: dict[str, Any] = json.loads(site.host.run([FACTS]).stdout)
    return found


def test_the_fact_is_installed_and_follows_the_daemon(site: RoleHost, azure: Azure) -> None:
    site.must_apply(facts=True, install_packages=True)
    assert site.host.run(["stat", "--format=%a %U", FACTS]).stdout.split() == ["755", "root"]
    wait_until(lambda: facts(site)["available"], "the facts", site.log)
    assert facts(site)["pending"] is False
    azure.announce("Reboot", "facts", hold=True)
    wait_until(lambda: facts(site)["pending"], "the event", site.log)
    again = site.apply(facts=True, install_packages=True)
    assert (again.status, again.changed_tasks) == (0, []), again.text
    site.host.run(["systemctl", "stop", SERVICE])
    assert (facts(site)["available"], facts(site)["reason"]) == (False, "the hook runner does not run")


def test_the_fact_that_is_turned_off_is_removed(site: RoleHost) -> None:
    site.must_apply()
    assert site.host.run(["ls", FACTS], check=False).stdout == ""


def test_the_removal_leaves_no_fact(site: RoleHost) -> None:
    site.must_apply(facts=True)
    site.must_apply(state="absent")
    assert site.host.run(["ls", FACTS], check=False).stdout == ""
