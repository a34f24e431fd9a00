# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The reactor files of salt/reactor on a real master: what they must not do, and hostile texts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from support.ready_hooks.web_server import Request, WebServer
from support.salt.azure import Azure
from support.salt.cluster import TREE, Cluster, cluster
from support.salt.salt_installation import SaltInstallation
from support.salt.tree_minion import MASTER_DIRS, MINION_DIRS, StepLog
from support.wait import wait_until

pytestmark = [pytest.mark.all, pytest.mark.xdist_group("reactor")]

NOTIFY, HINT, PUSH = "azure_events_notify.sls", "azure_events_hint.sls", "azure_events_push.sls"
HEADERS = "/etc/salt/azure_events_push.headers"
# the addresses in the files, which users replace
ADDRESSES = {
    NOTIFY: "http://127.0.0.1:9000/azure-events",
    HINT: "https://127.0.0.1:8000/hook/azure_events",
    PUSH: "https://127.0.0.1:5000/endpoint",
}
HOSTILE = "{{ 7 * 7 }}: '\n- x"


@pytest.fixture(scope="module")
def endpoint() -> Iterator[WebServer]:
    with WebServer() as made:
        yield made


@pytest.fixture(scope="module")
def here(
    installation: SaltInstallation, azure: Azure, endpoint: WebServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("reactor")
    headers = folder / "headers"
    headers.write_text("Authorization: Bearer t0ken\nContent-Type: application/json\n")
    headers.chmod(0o600)
    for name, address in ADDRESSES.items():
        text = (TREE / "reactor" / name).read_text()
        assert address in text and (HEADERS in text) == (name == PUSH)
        (folder / name).write_text(text.replace(address, f"{endpoint.url}/{name}").replace(HEADERS, str(headers)))
    one_vm = "salt://reactor/azure_events_one_vm.sls"
    reactor = [
        {"salt/beacon/*/azure_events/*": [one_vm, str(folder / HINT), str(folder / PUSH)]},
        {"salt/azure_events/*/*": [str(folder / NOTIFY)]},
    ]
    with cluster(installation, reactor=reactor, **MASTER_DIRS) as made:
        beacons = {"azure_events": [{"interval": 1}]}
        minion = made.minion("vm1", azure_events={"endpoint": azure.endpoints["vm1"]}, beacons=beacons, **MINION_DIRS)
        made.master.set_pillar(vm1=StepLog(minion).pillar())
        made.start()
        yield made


def wait_for_post(endpoint: WebServer, name: str, **fields: Any) -> Request:
    """Return the first post of a reactor file with these members."""

    def found() -> list[Request]:
        posts = [each for each in endpoint.requests if each.target.endswith(name)]
        return [each for each in posts if fields.items() <= each.json.items()]

    return wait_until(found, f"a post of {name} with {fields}")[0]


def test_event_of_two_vms_is_not_approved_without_the_engine(here: Cluster, azure: Azure, endpoint: WebServer) -> None:
    event_id = azure.announce("vm1", "vm2", kind="Freeze", notice="4h")
    here.minions["vm1"].wait_for_event("scheduled", event_id=event_id)
    assert wait_for_post(endpoint, HINT, minion="vm1").json == {"minion": "vm1"}
    azure.wait_for_polls("vm1", more=3)
    assert azure.approvals(event_id) == []


def test_text_of_azure_cannot_change_the_push(here: Cluster, endpoint: WebServer) -> None:
    data = {"id": "vm1", "event_id": 'A"1', "change": "started", "description": HOSTILE, "sequence": 3}
    here.master.run_runner("event.send", "salt/beacon/vm1/azure_events/started", data)
    pushed = wait_for_post(endpoint, PUSH, id='vm1/A"1/3/started')
    assert pushed.json["event"]["event_id"] == 'A"1' and pushed.json["event"]["description"] == HOSTILE
    assert pushed.headers["authorization"] == "Bearer t0ken"
    assert pushed.headers["content-type"] == "application/json"


def test_step_of_the_engine_is_notified(here: Cluster, endpoint: WebServer) -> None:
    data = {"event_id": 'A"1', "minions": ["vm1"], "reason": f'vm2: "failed" {HOSTILE}'}
    here.master.run_runner("event.send", "salt/azure_events/A1/held", data)
    assert wait_for_post(endpoint, NOTIFY, step="held").json == {"step": "held", **data}
