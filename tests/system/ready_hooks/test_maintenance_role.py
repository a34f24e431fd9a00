# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The roles maintenance and ready_hooks with ready hooks, on a real host."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support import simulator_process
from support.ansible_hosts import Hosts
from support.hosts.ansible_inventory import Applied, ansible_on
from support.hosts.bridge import IMDS
from support.ready_hooks.workload_host import LIBRARY, WorkloadHost
from support.simulator_process import Simulator
from support.wait import wait_until

pytestmark = pytest.mark.all

PLAYBOOK = "azure_imds.scheduled_events.maintenance"
ROLE = "azure_imds.scheduled_events.ready_hooks"
UNITS = ("first.service", "second.service")
MARKS = "/var/lib/marks-of-units"
# a unit writes its name when it starts and stops
UNIT = f"""[Service]
ExecStart=/bin/sh -c 'echo "start %n" >>{MARKS}; exec sleep infinity'
ExecStopPost=/bin/sh -c 'echo "stop %n" >>{MARKS}'
"""
HOOKS = [
    {"use": "systemd-units", "name": "one", "units": ["first.service"]},
    {"use": "systemd-units", "name": "two", "units": ["second.service"]},
]
COURSE = ["stop first.service", "stop second.service", "start second.service", "start first.service"]


@pytest.fixture(scope="module")
def workload(workload_host: Callable[[str], WorkloadHost]) -> WorkloadHost:
    host = workload_host("maint1")
    # the roles install the library
    host.run("rm", "-rf", LIBRARY)
    return host


@pytest.fixture(scope="module")
def ansible(workload: WorkloadHost, tmp_path_factory: pytest.TempPathFactory) -> Hosts:
    return ansible_on({workload.host.name: workload.host}, tmp_path_factory.mktemp("ansible"))


@pytest.fixture
def running(workload: WorkloadHost) -> Iterator[WorkloadHost]:
    """The host with its units running, and no marks yet."""
    for unit in UNITS:
        workload.write(f"/etc/systemd/system/{unit}", UNIT)
    workload.run("systemctl", "daemon-reload")
    workload.run("systemctl", "start", *UNITS)
    wait_until(lambda: len(marks(workload)) >= 2, "the units run", lambda: marks(workload))
    workload.write(MARKS, "")
    yield workload
    workload.run("systemctl", "stop", *UNITS)
    workload.run("rm", "-rf", MARKS, "/var/lib/azure-scheduled-events")


@pytest.fixture
def azure(workload: WorkloadHost) -> Iterator[Simulator]:
    vms = {workload.host.name: {"source": workload.host.address}}
    scenario = {"groups": {"set": {"kind": "availability_set", "vms": vms}}, "knobs": {"rate_limit": 0}}
    with simulator_process.start(scenario, listen=f"{IMDS}:80") as simulator:
        yield simulator


def marks(host: WorkloadHost) -> list[str]:
    file = host.host.file(MARKS)
    return file.read_text(encoding="utf-8").splitlines() if file.exists() else []


def announce(azure: Simulator, host: WorkloadHost, **more: Any) -> str:
    event = {"type": "Reboot", "resources": [host.host.name], "notice": "20m", "started_for": "1s", **more}
    return str(azure.post("/events", event)["id"])


def approvals(azure: Simulator) -> list[Any]:
    return [line for line in azure.get("/log")["lines"] if line["what"] == "approval"]


def role(ansible: Hosts, tmp_path: Path, entry_point: str, *words: str, **variables: Any) -> Applied:
    """Run an entry point of the role ready_hooks."""
    task = {"ansible.builtin.import_role": {"name": ROLE, "tasks_from": entry_point}}
    playbook = tmp_path / "play.json"
    playbook.write_text(json.dumps([{"hosts": "all", "gather_facts": False, "tasks": [task]}]), encoding="utf-8")
    ran = ansible.playbook(str(playbook), variables, *words)
    return Applied(ran.returncode, ran.stdout + ran.stderr)


def test_maintenance_with_ready_hooks_alone_prepares_approves_and_recovers(
    ansible: Hosts, azure: Simulator, running: WorkloadHost
) -> None:
    announce(azure, running)
    ran: subprocess.CompletedProcess[str] = ansible.playbook(PLAYBOOK, {"maintenance_ready_hooks": HOOKS})
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert len(approvals(azure)) == 1
    assert marks(running) == COURSE


def test_hook_that_fails_prevents_the_approval_and_the_rest_recovers(
    ansible: Hosts, azure: Simulator, running: WorkloadHost
) -> None:
    # starts without an approval
    announce(azure, running, notice="20s")
    missing = {"use": "systemd-units", "name": "missing", "units": ["missing.service"]}
    ran = ansible.playbook(PLAYBOOK, {"maintenance_ready_hooks": [HOOKS[0], missing, HOOKS[1]]})
    assert ran.returncode != 0 and "ready hook missing: prepare failed: " in ran.stdout, ran.stdout
    assert approvals(azure) == []
    assert marks(running) == ["stop first.service", "start first.service"]


def test_preparation_of_a_removed_entry_is_reported(
    ansible: Hosts, azure: Simulator, tmp_path: Path, running: WorkloadHost
) -> None:
    assert role(ansible, tmp_path, "prepare", ready_hooks_list=[HOOKS[1]]).status == 0
    announce(azure, running)
    ran = ansible.playbook(PLAYBOOK, {"maintenance_ready_hooks": [HOOKS[0]]})
    assert ran.returncode != 0 and "ready-hooks/two.json" in ran.stdout, ran.stdout
    removed = role(ansible, tmp_path, "main", ready_hooks_state="absent")
    assert removed.status != 0 and "ready-hooks/two.json" in removed.text
    assert role(ansible, tmp_path, "recover", ready_hooks_list=[HOOKS[1]]).status == 0
    assert marks(running)[-1] == "start second.service"


def test_role_prepares_in_order_and_recovers_in_reverse(ansible: Hosts, tmp_path: Path, running: WorkloadHost) -> None:
    dry = role(ansible, tmp_path, "prepare", "--check", ready_hooks_list=HOOKS)
    assert dry.status == 0 and marks(running) == [], dry.text
    for entry_point, changed in (("prepare", 2), ("prepare", 0), ("recover", 1), ("recover", 0)):
        ran = role(ansible, tmp_path, entry_point, ready_hooks_list=HOOKS)
        assert ran.status == 0 and ran.changed - ("Install the ready hooks" in ran.changed_tasks) == changed, ran.text
    assert marks(running) == COURSE


def test_unknown_option_of_the_last_hook_fails_before_the_first_one_runs(
    ansible: Hosts, tmp_path: Path, running: WorkloadHost
) -> None:
    wrong = [HOOKS[0], {"use": "systemd-units", "name": "two", "unit": "second.service"}]
    ran = role(ansible, tmp_path, "prepare", ready_hooks_list=wrong)
    assert ran.status != 0 and "did you mean units?" in ran.text
    assert marks(running) == []


def test_recover_continues_after_a_hook_that_fails(ansible: Hosts, tmp_path: Path, running: WorkloadHost) -> None:
    assert role(ansible, tmp_path, "prepare", ready_hooks_list=HOOKS).status == 0
    running.write("/etc/systemd/system/second.service", "[Service]\nExecStartPre=/bin/false\nExecStart=/bin/true\n")
    running.run("systemctl", "daemon-reload")
    ran = role(ansible, tmp_path, "recover", ready_hooks_list=HOOKS)
    assert ran.status != 0 and "ready hook two: recover failed" in ran.text
    assert "start first.service" in marks(running)
    assert (running.record("one"), running.record("two")) == (None, {"units": ["second.service"]})
