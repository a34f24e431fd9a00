# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The role lets the daemon push changes and write facts in its sandbox; each test continues the one before."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.hosts.bridge import IMDS
from support.hosts.lab import Lab
from support.hosts.role_host import SERVICE, Azure, RoleHost, azure_of
from support.push_endpoint import PushEndpoint, push_endpoint
from support.wait import wait_until

pytestmark = pytest.mark.all

FACTS = "/etc/ansible/facts.d/azure_scheduled_events.fact"
TOKEN, HMAC = "/etc/azure-scheduled-events/push-token", "/etc/azure-scheduled-events/push-hmac"


@pytest.fixture(scope="module")
def site(lab: Lab, folder: Path) -> RoleHost:
    return RoleHost(lab.host("push"), folder, [])


@pytest.fixture(scope="module", autouse=True)
def azure(site: RoleHost, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Azure]:
    with azure_of({site.host.name: site.host}, tmp_path_factory.mktemp("azure")) as made:
        yield made


@pytest.fixture(scope="module")
def endpoint() -> Iterator[PushEndpoint]:
    with push_endpoint(host=IMDS) as made:
        yield made


def given(endpoint: PushEndpoint, **variables: Any) -> dict[str, Any]:
    return {"push_url": endpoint.url, "push_token": "t0ken", "push_hmac_secret": "k3y", "facts": True, **variables}


def facts(site: RoleHost) -> dict[str, Any]:
    file = site.host.file(FACTS)
    data: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    return data


def attributes(site: RoleHost, *paths: str) -> list[str]:
    return site.host.run(["stat", "--format=%a %U", *paths]).stdout.splitlines()


def test_changes_are_pushed_and_facts_written_from_the_sandbox(
    site: RoleHost, azure: Azure, endpoint: PushEndpoint
) -> None:
    first = site.must_apply(**given(endpoint, install_packages=True))
    assert "t0ken" not in first.text and "k3y" not in first.text
    assert attributes(site, TOKEN, HMAC, FACTS) == ["600 root", "600 root", "644 root"]
    wait_until(lambda: facts(site).get("available"), "the facts", site.log)
    assert facts(site)["pending"] is False
    event = azure.announce("Reboot", "push", hold=True)
    wait_until(lambda: endpoint.taken, "the change", site.log)
    assert endpoint.taken[0].headers["authorization"] == "Bearer t0ken"
    assert endpoint.taken[0].headers["x-hub-signature-256"].startswith("sha256=")
    assert endpoint.taken[0].change["event"]["event_id"] == event
    wait_until(lambda: facts(site)["pending"], "the fact", site.log)
    again = site.apply(**given(endpoint, install_packages=True))
    assert (again.status, again.changed_tasks) == (0, []), again.text


def test_systemd_marks_the_facts_of_a_killed_daemon(site: RoleHost, endpoint: PushEndpoint) -> None:
    site.must_apply(**given(endpoint, unit_overrides="[Service]\nRestart=no"))
    wait_until(lambda: facts(site).get("stale") is False and site.watches(), "the facts", site.log)
    site.host.run(["systemctl", "kill", "--signal=KILL", "--kill-who=main", SERVICE])
    wait_until(lambda: facts(site)["stale"] is True, "the mark", site.log)
    assert facts(site)["pending"] is True
    site.host.run(["systemctl", "start", SERVICE])
    wait_until(lambda: facts(site)["stale"] is False, "new facts", site.log)


def test_another_token_needs_no_restart(site: RoleHost, azure: Azure, endpoint: PushEndpoint) -> None:
    site.must_apply(**given(endpoint))
    wait_until(site.watches, "the daemon polls", site.log)
    process = site.process()
    applied = site.must_apply(**given(endpoint, push_token="an0ther"))
    assert applied.changed_tasks == ["Install the secrets"] and site.process() == process, applied.text
    azure.announce("Freeze", "push", hold=True)
    wait_until(lambda: endpoint.taken[-1].headers["authorization"] == "Bearer an0ther", "the change", site.log)


def test_what_is_turned_off_is_removed(site: RoleHost, endpoint: PushEndpoint) -> None:
    site.must_apply(push_url=endpoint.url, push_token="an0ther")
    assert site.host.run(["ls", FACTS, HMAC], check=False).stdout == ""
    assert attributes(site, TOKEN) == ["600 root"]


def test_a_wrong_secret_is_refused_before_anything_changes(site: RoleHost, endpoint: PushEndpoint) -> None:
    refused = site.apply(push_url=endpoint.url, push_token="two words")
    assert refused.status != 0 and f"push_token_file: {TOKEN}: expected one line" in " ".join(refused.text.split())
    assert "two words" not in refused.text
    assert site.host.file(TOKEN).read_text(encoding="utf-8") == "an0ther"


def test_the_removal_leaves_no_secret_no_spool_and_no_facts(site: RoleHost, endpoint: PushEndpoint) -> None:
    site.must_apply(**given(endpoint))
    wait_until(lambda: facts(site), "the facts", site.log)
    site.must_apply(state="absent")
    found = site.host.run(
        ["find", "/etc/azure-scheduled-events", FACTS, "/var/lib/azure-scheduled-events"], check=False
    )
    assert sorted(Path(path).name for path in found.stdout.split()) == ["azure-scheduled-events", "journal.db"]
