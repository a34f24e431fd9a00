# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The reactor files of salt/reactor, each on a real master."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.salt.azure import Azure, simulated
from support.salt.cluster import TREE, Cluster, cluster
from support.salt.salt_installation import SaltInstallation
from support.salt.tree_minion import MINION_DIRS, StepLog
from support.salt.webhook_receiver import Hook
from support.wait import wait_until

pytestmark = pytest.mark.xdist_group("reactor")

VMS = {"web": {"kind": "availability_set", "vms": {"vm1": {}, "vm2": {}}}}
NOTIFY, ONE_VM, HINT = "azure_events_notify.sls", "azure_events_one_vm.sls", "azure_events_hint.sls"
# the addresses that the files have for their users to replace
ADDRESSES = {NOTIFY: "http://127.0.0.1:9000/azure-events", HINT: "https://127.0.0.1:8000/hook/azure_events"}


@pytest.fixture(scope="module")
def azure() -> Iterator[Azure]:
    with simulated(VMS) as running:
        yield running


@pytest.fixture(scope="module")
def hook() -> Iterator[Hook]:
    with Hook() as made:
        yield made


def copied(folder: Path, name: str, hook: Hook) -> str:
    """A reactor file with the address that its user has set."""
    text = (TREE / "reactor" / name).read_text()
    assert ADDRESSES[name] in text
    (folder / name).write_text(text.replace(ADDRESSES[name], hook.address + "/" + name))
    return str(folder / name)


@pytest.fixture(scope="module")
def here(
    installation: SaltInstallation, azure: Azure, hook: Hook, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("reactor")
    reactor = [
        {"salt/beacon/*/azure_events/*": ["salt://reactor/" + ONE_VM, copied(folder, HINT, hook)]},
        {"salt/azure_events/*/*": [copied(folder, NOTIFY, hook)]},
    ]
    with cluster(installation, reactor=reactor) as made:
        minion = made.minion(
            "vm1",
            azure_events={"endpoint": azure.endpoints["vm1"]},
            beacons={"azure_events": [{"interval": 1}]},
            **MINION_DIRS,
        )
        made.master.set_pillar(vm1=StepLog(minion).pillar())
        made.start()
        yield made


def test_one_vm_prepares_approves_and_recovers_without_the_engine(here: Cluster, azure: Azure) -> None:
    step_log = StepLog(here.minions["vm1"])
    event_id = azure.announce("vm1", kind="Freeze", notice="4h")
    wait_until(lambda: azure.approvals(event_id), "the approval")
    assert step_log.counts == (1, 0)
    azure.simulator.advance(2)
    azure.end(event_id)
    step_log.wait("recover")
    assert step_log.counts == (1, 1) and azure.approvals(event_id) == ["vm1"]


def test_event_of_two_vms_is_left_alone_without_the_engine(here: Cluster, azure: Azure, hook: Hook) -> None:
    event_id = azure.announce("vm1", "vm2", kind="Freeze", notice="4h")
    here.minions["vm1"].wait_for_event("scheduled", event_id=event_id)
    hook.wait("/" + HINT, minion="vm1")
    azure.wait_for_polls("vm1", more=3)
    assert azure.approvals(event_id) == []


def test_hint_is_handed_over_to_the_other_master(here: Cluster, azure: Azure, hook: Hook) -> None:
    hook.posts.clear()
    azure.announce("vm1", kind="Freeze", notice="4h")
    assert hook.wait("/" + HINT) == {"minion": "vm1"}


def test_step_of_the_engine_is_notified(here: Cluster, hook: Hook) -> None:
    data = {"event_id": 'A"1', "minions": ["vm1"], "reason": 'vm2: "failed": {{ 7 * 7 }}'}
    here.master.run("salt-run", "event.send", "salt/azure_events/A1/held", json.dumps(data))
    got = hook.wait("/" + NOTIFY, step="held")
    assert got == {"step": "held", **data}
