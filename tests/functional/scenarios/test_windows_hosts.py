# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The event modules on Windows hosts, by real runs of Ansible over a stand-in for the connection."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from support.ansible_hosts import COLLECTION, Hosts
from support.module_play import Run, run_modules
from support.simulator_process import Simulator
from support.wait import wait_until
from support.windows_hosts.host import WindowsHost, environment

pytestmark = pytest.mark.all

EVENT_ID = "5C1D6E3A-84F2-4B7E-9A10-2F0C7B9D4E01"
POLICY = "C:\\ProgramData\\Prüfung\\policy.yml"


@pytest.fixture
def azure(simulate: Callable[..., Simulator]) -> Simulator:
    return simulate({"name": "one", "id": EVENT_ID, "type": "Reboot", "resources": ["vm1"], "source": "User"})


@pytest.fixture
def windows(tmp_path: Path) -> WindowsHost:
    return WindowsHost(tmp_path / "win1")


@pytest.fixture
def second(tmp_path: Path) -> WindowsHost:
    return WindowsHost(tmp_path / "win2")


@pytest.fixture
def hosts(tmp_path: Path, windows: WindowsHost, second: WindowsHost) -> Hosts:
    found = Hosts(tmp_path, {"win1": windows.variables, "win2": second.variables, "lin1": {}})
    found.environment.update(environment())
    return found


def playbook(folder: Path, *plays: dict[str, Any]) -> str:
    file = folder / "playbook.yml"
    file.write_text(json.dumps(plays))
    return str(file)


def play(hosts: str, *tasks: dict[str, Any], **keywords: Any) -> dict[str, Any]:
    return {"hosts": hosts, "gather_facts": False, "tasks": list(tasks), **keywords}


def task(module: str, options: dict[str, Any], **keywords: Any) -> dict[str, Any]:
    return {COLLECTION + module: options, **keywords}


def approvals(azure: Simulator) -> list[str]:
    found: list[str] = azure.get("/events/one")["approved_by"]
    return found


def test_event_is_approved_once_by_a_policy_of_the_host_with_a_receipt_on_the_controller(
    azure: Simulator, hosts: Hosts, windows: WindowsHost, tmp_path: Path
) -> None:
    windows.write_file(POLICY, "rules:\n- name: restarts\n  when: {type: [Reboot]}\n  approve: now\n")
    options = {"endpoint": azure.endpoints["vm1"], "policy_file": POLICY, "receipts": str(tmp_path / "receipts")}
    assert hosts.module("win1", "event_approve", "--check", **options)["approved"] == [EVENT_ID]
    assert approvals(azure) == [] and not (tmp_path / "receipts").exists()
    done = hosts.module("win1", "event_approve", **options)
    assert done["changed"] and done["approved"] == [EVENT_ID]
    assert approvals(azure) == ["vm1"]
    assert [path.name for path in (tmp_path / "receipts" / "hosts").iterdir()] == ["win1"]
    posts = [options for options in windows.exchanges() if options["method"] == "POST"]
    assert len(posts) == 1
    again = hosts.module("win1", "event_approve", **options)
    assert again["changed"] is False and again["approvals"][0]["outcome"] in ("already_approved", "started")


def test_mixed_play_with_defaults_delegation_and_no_log(
    azure: Simulator, hosts: Hosts, windows: WindowsHost, second: WindowsHost, tmp_path: Path
) -> None:
    receipts = tmp_path / "receipts"
    file = playbook(
        tmp_path,
        play(
            "all",
            task("event_info", {}, register="coming"),
            {"ansible.builtin.assert": {"that": ["coming.events | length == 1", "coming.resource_name == 'vm1'"]}},
            task(
                "event_approve",
                {"event_ids": "{{ coming.events | map(attribute='event_id') }}", "receipts": str(receipts)},
                delegate_to="win2",
                run_once=True,
                register="approval",
            ),
            {
                "ansible.builtin.assert": {
                    "that": [
                        "approval.approved | length == 1",
                        "approval.diff.after.events.values() | list == ['approved']",
                    ]
                }
            },
            task("event_info", {"resource_name": "secret"}, no_log=True),
            module_defaults={"group/azure_imds.scheduled_events.scheduled_events": {"endpoint": "{{ endpoint }}"}},
        ),
    )
    ran = hosts.playbook(file, {"endpoint": azure.endpoints["vm1"]}, "-vvv")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "secret" not in ran.stdout
    assert approvals(azure) == ["vm1"]
    assert [path.name for path in (receipts / "hosts").iterdir()] == ["win2"]
    assert any(options["method"] == "POST" for options in second.exchanges())
    assert all(options["method"] == "GET" for options in windows.exchanges())


def test_facts_are_gathered_in_a_mixed_inventory(azure: Simulator, hosts: Hosts, tmp_path: Path) -> None:
    """Beside event_facts.ps1, the link event_facts makes Ansible choose the module in Python for POSIX hosts."""
    hosts.environment["ANSIBLE_FACTS_MODULES"] = COLLECTION + "event_facts"
    written = {
        "content": "{{ ansible_facts.azure_scheduled_events | to_json }}",
        "dest": str(tmp_path) + "/facts-{{ inventory_hostname }}",
    }
    file = playbook(
        tmp_path,
        {
            "hosts": "lin1,win1",
            "gather_facts": True,
            "tasks": [{"ansible.builtin.copy": written, "delegate_to": "lin1"}],
            "module_defaults": {COLLECTION + "event_facts": {"endpoint": azure.endpoints["vm1"]}},
        },
    )
    ran = hosts.playbook(file)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    linux, windows = (json.loads((tmp_path / f"facts-{host}").read_text()) for host in ("lin1", "win1"))
    assert linux["available"] and linux["pending"] and len(linux["events"]) == 1
    assert not windows["available"] and "pending" not in windows and windows["events"] == []
    assert COLLECTION + "event_facts" in windows["reason"]


def test_async_task_fails_with_the_remedy(azure: Simulator, hosts: Hosts, windows: WindowsHost, tmp_path: Path) -> None:
    wait = Run("event_wait", {"endpoint": azure.endpoints["vm1"]}, {"async": 60, "poll": 1})
    results = run_modules(hosts, tmp_path, {"wait": wait})
    assert results["win1"]["wait"]["failed"] and "async" in results["win1"]["wait"]["msg"]
    assert results["lin1"]["wait"]["outcome"] == "reached"
    assert windows.runs() == []


@pytest.mark.parametrize(
    "module, options",
    [("event_info", {"endpoint": "https://127.0.0.1"}), ("event_approve", {}), ("event_wait", {"sate": "absent"})],
    ids=str,
)
def test_wrong_options_fail_before_the_connection(
    hosts: Hosts, windows: WindowsHost, module: str, options: dict[str, Any]
) -> None:
    windows.go_down()
    result = hosts.module("win1", module, **options)
    assert "unreachable" not in result and next(iter(options), "policy") in result["msg"]


def test_host_that_is_down_is_unreachable(hosts: Hosts, windows: WindowsHost, tmp_path: Path) -> None:
    windows.go_down()
    for module in ("event_info", "event_facts", "event_wait"):
        result = hosts.module("win1", module, endpoint="http://127.0.0.1:9", timeout=5)
        assert result["unreachable"] is True


def test_wait_continues_after_the_host_was_lost(azure: Simulator, hosts: Hosts, windows: WindowsHost) -> None:
    def restart() -> None:
        # the name, the first document, and a request that the host repeats
        wait_until(lambda: len(windows.exchanges()) >= 3, "the third run")
        windows.go_down()
        wait_until(windows.has_refused, "a lost connection")
        azure.post("/advance", {"seconds": 900})
        windows.come_up()

    with ThreadPoolExecutor(1) as threads:
        restarting = threads.submit(restart)
        waited = hosts.module("win1", "event_wait", endpoint=azure.endpoints["vm1"], state="started", timeout=400)
        restarting.result()
    assert [exchange.get("repeat_for") for exchange in windows.exchanges()][:3] == [None, None, 50.0]
    assert waited["outcome"] == "reached" and waited["imds_errors"] >= 1
    assert waited["imds_error"]["kind"] == "ImdsUnreachable"


def test_wait_for_a_lost_host_ends_with_its_time(azure: Simulator, hosts: Hosts, windows: WindowsHost) -> None:
    def die() -> None:
        # the first document, and a request that the host repeats
        wait_until(lambda: len(windows.exchanges()) >= 2, "the second run")
        windows.go_down()

    options = {"endpoint": azure.endpoints["vm1"], "resource_name": "vm1", "state": "started", "timeout": 6}
    with ThreadPoolExecutor(1) as threads:
        dying = threads.submit(die)
        waited = hosts.module("win1", "event_wait", **options)
        dying.result()
    assert windows.has_refused() and waited["imds_error"]["kind"] == "ImdsUnreachable"
    assert waited["outcome"] == "timeout" and 6 <= waited["elapsed"] < 20


def test_waiting_hosts_need_no_fork(
    azure: Simulator, hosts: Hosts, windows: WindowsHost, second: WindowsHost, tmp_path: Path
) -> None:
    def start_the_event() -> None:
        # the one that had to wait for the fork of the other would begin after that one's timeout
        try:
            wait_until(lambda: windows.exchanges() and second.exchanges(), "both hosts wait")
        finally:
            azure.post("/advance", {"seconds": 900})

    wait = {"endpoint": azure.endpoints["vm1"], "state": "started", "timeout": 400}
    file = playbook(tmp_path, play("win1,win2", task("event_wait", wait), strategy="ansible.builtin.free"))
    with ThreadPoolExecutor(1) as threads:
        starting = threads.submit(start_the_event)
        ran = hosts.playbook(file, None, "--forks", "1")
        starting.result()
    assert ran.returncode == 0, ran.stdout + ran.stderr
