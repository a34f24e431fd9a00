# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The role hook_runner upgrades a host from version 0.1.0 during an event; needs the history of the repository."""

from __future__ import annotations

import io
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.hosts.lab import Lab
from support.hosts.role_host import Azure, RoleHost, azure_of, idle_host
from support.repository import REPOSITORY
from support.wait import wait_until

pytestmark = pytest.mark.all

# the last commit before the journal has got its first new column
VERSION_0_1_0 = "07bf835109139c082cca8d0d8de73209d61d2655"
LIBRARY = "/usr/local/lib/azure-scheduled-events"
JOURNAL = "/var/lib/azure-scheduled-events/journal.db"
NEW_COLUMN = "SELECT count(*) FROM pragma_table_info('steps') WHERE name = 'cause'"
VM = "upgrade"
# seconds from an approval to the start, and from the start to the end of the event
START, LIFE = 2, 700


@pytest.fixture(scope="module")
def old_collections(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A path of collections with version 0.1.0."""
    packed = subprocess.run(
        ["git", "-C", str(REPOSITORY), "archive", VERSION_0_1_0], capture_output=True, timeout=60, check=False
    )
    if packed.returncode:
        pytest.skip(f"needs commit {VERSION_0_1_0} of the repository: {packed.stderr.decode().strip()}")
    collections = tmp_path_factory.mktemp("collections")
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(collections / "ansible_collections" / "azure_imds" / "scheduled_events", filter="tar")
    return collections


@pytest.fixture(scope="module")
def upgraded(lab: Lab, folder: Path) -> RoleHost:
    """The present role, which is not applied yet."""
    return RoleHost(lab.host(VM), folder)


@pytest.fixture(scope="module")
def azure(upgraded: RoleHost, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Azure]:
    with azure_of({VM: upgraded.host}, tmp_path_factory.mktemp("azure")) as made:
        yield made


@pytest.fixture
def site(old_collections: Path, upgraded: RoleHost, azure: Azure, tmp_path: Path) -> Iterator[RoleHost]:
    """The host with the daemon of version 0.1.0, which watches an Azure without events."""
    RoleHost(upgraded.host, tmp_path, collections=old_collections).must_apply()
    assert upgraded.host.file(f"{LIBRARY}/hook_runner/keeper.py").exists()
    with idle_host(upgraded, azure) as ready:
        yield ready
    upgraded.must_apply(state="absent", remove_journal=True)


def upgrade(site: RoleHost) -> None:
    """Apply the present role, and check that its daemon has taken over the journal."""
    process = site.process()
    assert has_new_column(site) == 0
    site.must_apply()
    wait_until(lambda: site.process() not in ("0", process) and site.watches(), "the present daemon polls", site.log)
    assert has_new_column(site) == 1
    assert not site.host.file(f"{LIBRARY}/hook_runner/keeper.py").exists()


def has_new_column(site: RoleHost) -> int:
    query = f"import sqlite3; print(sqlite3.connect('{JOURNAL}').execute(\"{NEW_COLUMN}\").fetchone()[0])"
    return int(site.host.run(["python3", "-c", query]).stdout)


def end_event(site: RoleHost, azure: Azure, event: str) -> None:
    """Let the event start and end; each stage has then run once."""
    azure.advance(START)
    site.wait_for("ended", "started")
    azure.advance(LIFE)
    site.wait_for("ended", "recover")
    wait_until(site.has_no_events, "the event is closed", site.log)
    assert [(site.began(stage), site.ended(stage)) for stage in ("prepare", "started", "recover")] == [(1, 1)] * 3, (
        site.markers()
    )
    assert azure.approvals(event) == 1


def test_upgrade_from_0_1_0_with_prepared_event_recovers_once(site: RoleHost, azure: Azure) -> None:
    event = azure.announce("Freeze", VM, duration=0)
    azure.wait_for_approval(event, site)
    wait_until(lambda: site.sees("approval", "accepted"), "the approval is in the journal", site.log)
    upgrade(site)
    assert site.sees("approval", "accepted"), site.status()
    end_event(site, azure, event)


def test_upgrade_from_0_1_0_with_running_prepare_hook_continues_it(site: RoleHost, azure: Azure) -> None:
    site.hold("prepare")
    event = azure.announce("Freeze", VM, duration=0)
    site.wait_for("began", "prepare")
    upgrade(site)
    assert (site.began("prepare"), site.ended("prepare"), azure.approvals(event)) == (1, 0, 0)
    site.release("prepare")
    azure.wait_for_approval(event, site)
    end_event(site, azure, event)
