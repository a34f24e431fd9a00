# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The playbook of docs/windows.md, over a connection that stands in for one to a Windows host."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.ansible_hosts import COLLECTION, Hosts
from support.recipes.printed import printed_in
from support.simulator_process import Simulator
from support.windows_hosts.host import WindowsHost, environment

PLAYBOOK = "maintain-windows.yml"
WAIT = "Wait until all events are over, also while the VM restarts"


def for_stand_in(play: dict[str, Any], endpoint: str, receipts: Path) -> dict[str, Any]:
    """Return the play for a stand-in, on which a message takes the place of each change of a service."""
    for task in play["tasks"]:
        service = task.pop("ansible.windows.win_service", None)
        if service is not None:
            task["ansible.builtin.debug"] = {"msg": f"{service['name']} is {service['state']}"}
        if COLLECTION + "event_approve" in task:
            task[COLLECTION + "event_approve"]["receipts"] = str(receipts)
    defaults = {f"group/{COLLECTION}scheduled_events": {"endpoint": endpoint}}
    return {**play, "hosts": "win1", "module_defaults": defaults}


def run(tmp_path: Path, azure: Simulator, at: dict[str, Callable[[], object]]) -> str:
    host = WindowsHost(tmp_path / "win1")
    hosts = Hosts(tmp_path, {"win1": host.variables})
    hosts.environment.update(environment())
    [text] = [printed.text for printed in printed_in("docs/windows.md") if printed.name == PLAYBOOK]
    [play] = yaml.safe_load(text)
    file = tmp_path / PLAYBOOK
    file.write_text(json.dumps([for_stand_in(play, azure.endpoints["vm1"], tmp_path / "receipts")]))
    ran = hosts.playbook(str(file), at=at)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def test_host_with_an_event_stops_approves_waits_and_starts(simulate: Callable[..., Simulator], tmp_path: Path) -> None:
    azure = simulate({"name": "one", "type": "Reboot", "resources": ["vm1"]}, knobs={"start_delay": "1h"})
    output = run(tmp_path, azure, {WAIT: lambda: azure.post("/events/one/cancel")})
    assert output.index("W3SVC is stopped") < output.index(WAIT) < output.index("W3SVC is started")
    posts = [request for request in azure.get("/requests?vm=vm1")["requests"] if request["method"] == "POST"]
    assert len(posts) == 1


@pytest.mark.all
def test_event_of_several_vms_is_prepared_for_and_not_approved(
    simulate: Callable[..., Simulator], tmp_path: Path
) -> None:
    azure = simulate({"name": "one", "type": "Reboot", "resources": ["vm1", "vm2"]})
    output = run(tmp_path, azure, {WAIT: lambda: azure.post("/events/one/cancel")})
    assert "W3SVC is started" in output
    assert not [request for request in azure.get("/requests")["requests"] if request["method"] == "POST"]
