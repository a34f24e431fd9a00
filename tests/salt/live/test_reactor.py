# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The reactor files of salt/reactor, each on a real master."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from azure_scheduled_events.outcome import OUTCOMES
from support.push_endpoint import Pushed, PushEndpoint, push_endpoint
from support.salt.azure import Azure, simulated
from support.salt.cluster import TREE, Cluster, cluster
from support.salt.salt_installation import SaltInstallation
from support.salt.tree_minion import MINION_DIRS, StepLog
from support.salt.webhook_receiver import Hook
from support.wait import wait_until

pytestmark = [pytest.mark.all, pytest.mark.xdist_group("reactor")]

VMS = {"web": {"kind": "availability_set", "vms": {"vm1": {}, "vm2": {}}}}
NOTIFY, ONE_VM, HINT = "azure_events_notify.sls", "azure_events_one_vm.sls", "azure_events_hint.sls"
PUSH, HEADERS = "azure_events_push.sls", "/etc/salt/azure_events_push.headers"
# the addresses in the files, which users replace
ADDRESSES = {NOTIFY: "http://127.0.0.1:9000/azure-events", HINT: "https://127.0.0.1:8000/hook/azure_events"}
PUSH_ADDRESS = "https://127.0.0.1:5000/endpoint"


@pytest.fixture(scope="module")
def azure() -> Iterator[Azure]:
    with simulated(VMS) as running:
        yield running


@pytest.fixture(scope="module")
def hook() -> Iterator[Hook]:
    with Hook() as made:
        yield made


def copied(folder: Path, name: str, hook: Hook) -> str:
    """Return a reactor file with another address."""
    text = (TREE / "reactor" / name).read_text()
    assert ADDRESSES[name] in text
    (folder / name).write_text(text.replace(ADDRESSES[name], hook.address + "/" + name))
    return str(folder / name)


@pytest.fixture(scope="module")
def endpoint() -> Iterator[PushEndpoint]:
    with push_endpoint() as made:
        yield made


def pushing(folder: Path, endpoint: PushEndpoint) -> str:
    """Return the reactor file that pushes, with the address and the headers of this test."""
    headers = folder / "headers"
    headers.write_text("Authorization: Bearer t0ken\nContent-Type: application/json\n")
    headers.chmod(0o600)
    text = (TREE / "reactor" / PUSH).read_text()
    assert PUSH_ADDRESS in text and HEADERS in text
    (folder / PUSH).write_text(text.replace(PUSH_ADDRESS, endpoint.url).replace(HEADERS, str(headers)))
    return str(folder / PUSH)


@pytest.fixture(scope="module")
def here(
    installation: SaltInstallation,
    azure: Azure,
    hook: Hook,
    endpoint: PushEndpoint,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("reactor")
    files = ["salt://reactor/" + ONE_VM, copied(folder, HINT, hook), pushing(folder, endpoint)]
    reactor = [
        {"salt/beacon/*/azure_events/*": files},
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


def test_event_of_two_vms_is_not_approved_without_the_engine(here: Cluster, azure: Azure, hook: Hook) -> None:
    event_id = azure.announce("vm1", "vm2", kind="Freeze", notice="4h")
    here.minions["vm1"].wait_for_event("scheduled", event_id=event_id)
    hook.wait("/" + HINT, minion="vm1")
    azure.wait_for_polls("vm1", more=3)
    assert azure.approvals(event_id) == []


def test_hint_is_sent_to_the_other_master(here: Cluster, azure: Azure, hook: Hook) -> None:
    hook.posts.clear()
    azure.announce("vm1", kind="Freeze", notice="4h")
    assert hook.wait("/" + HINT) == {"minion": "vm1"}


def test_change_is_pushed_in_the_shared_shape_with_a_token(here: Cluster, azure: Azure, endpoint: PushEndpoint) -> None:
    event_id = azure.announce("vm1", "vm2", kind="Freeze", notice="4h")

    def pushed(change: str) -> list[Pushed]:
        return [
            each
            for each in endpoint.taken
            if (each.change["event"]["event_id"], each.change["change"]) == (event_id, change)
        ]

    first = wait_until(lambda: pushed("appeared"), "the push")[0]
    assert first.headers["authorization"] == "Bearer t0ken"
    assert first.headers["content-type"] == "application/json"
    change = first.change
    (listed,) = [
        each for each in here.minions["vm1"].ask("azure_events.list")["events"] if each["event_id"] == event_id
    ]
    assert change.pop("id").startswith(f"vm1/{event_id}/") and change.pop("observed_at").endswith("Z")
    assert change == {
        "schema": "azure_imds.scheduled_events/change/1",
        "change": "appeared",
        "outcome": None,
        "event": {name: listed[name] for name in change["event"]},
        "reporter": "vm1",
        "reported_by": "salt",
        "resource_id": None,
    }
    assert set(change["event"]) == {
        *("event_id", "event_type", "status", "resources", "resource_type"),
        *("not_before", "description", "source", "duration_seconds"),
    }
    azure.end(event_id)
    (gone, *_again) = wait_until(lambda: pushed("gone"), "the push of the end")
    assert gone.change["outcome"] in OUTCOMES


def test_text_of_azure_cannot_change_the_push(here: Cluster, endpoint: PushEndpoint) -> None:
    data = {"id": "vm1", "event_id": 'A"1', "change": "started", "description": "{{ 7 * 7 }}: '\n- x", "sequence": 3}
    here.master.run_runner("event.send", "salt/beacon/vm1/azure_events/started", data)
    found = wait_until(
        lambda: [each.change for each in endpoint.taken if each.change["event"]["event_id"] == 'A"1'], "the push"
    )
    assert (found[0]["id"], found[0]["event"]["description"]) == ('vm1/A"1/3/started', data["description"])


def test_step_of_the_engine_is_notified(here: Cluster, hook: Hook) -> None:
    data = {"event_id": 'A"1', "minions": ["vm1"], "reason": 'vm2: "failed": {{ 7 * 7 }}'}
    here.master.run_runner("event.send", "salt/azure_events/A1/held", data)
    got = hook.wait("/" + NOTIFY, step="held")
    assert got == {"step": "held", **data}
