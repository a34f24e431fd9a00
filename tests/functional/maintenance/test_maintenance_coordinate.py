# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""maintenance_leader: external: hook runners prepare and recover; the playbook approves after all of them.

Also the module hook_runner_info, which the role uses.
"""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.maintenance.control_plane import TOKEN, by_arm, requests_of_route
from support.maintenance.fleet import LATE, PLAYBOOK, failed, flaky_connection, rows, variables
from support.maintenance.hook_runners import DECIDE, HookRunners
from support.recipes.printed import find
from support.simulator_process import Simulator
from support.wait import wait_until

STEPS = ("prepared", "approved", "started", "over", "recovered")
# a task that begins when the first decision was taken
AFTER_DECISION = "Follow the events further"
# tasks that begin after the hosts, or Azure Resource Manager, have answered the approval
APPROVED, APPROVED_BY_ARM = "Approve through Azure Resource Manager", "Show the answers of Azure Resource Manager"
APPROVE = "Approve the events of which this host is the first VM"
UNSENT = {"kind": "server-error", "route": "scheduledevents", "method": "POST", "vm": "vm1"}
# the notice of LATE, and less than its duration more
NOTICE_OF_LATE = 4 * 3600 + 60


@pytest.fixture
def make_fleet(tmp_path: Path) -> Iterator[Callable[..., HookRunners]]:
    made: list[HookRunners] = []

    def make(simulator: Simulator, *names: str, **more: object) -> HookRunners:
        made.append(HookRunners(simulator, tmp_path, names or ("vm1", "vm2"), **more))
        for name in made[-1].daemons:
            made[-1].hook(name, "prepare/10-drain", ":")
            made[-1].hook(name, "recover/10-drain", ":")
        return made[-1]

    yield make
    for fleet in made:
        fleet.close()


def waits_for(path: Path) -> str:
    """Return the body of a hook that ends when the file exists."""
    return f"until test -e {path}; do sleep 0.05; done"


def runs_of(fleet: HookRunners, name: str, hook: str) -> int:
    return len([mark for mark in fleet.daemons[name].harness.marks() if (mark.what, mark.hook) == ("begin", hook)])


def announce(fleet: HookRunners, **members: object) -> str:
    """Announce an event, and wait until all hook runners know it with these members; return its id."""
    event_id = str(fleet.azure.simulator.post("/events", LATE)["id"])
    for name in fleet.daemons:
        fleet.wait_for(name, event_id, **members)
    return event_id


def start_and_end(fleet: HookRunners, event_id: str, by: float = 2) -> None:
    """Let the event start after these seconds and end, when all hook runners have observed it."""
    fleet.azure.advance(by)
    for name in fleet.daemons:
        fleet.wait_for(name, event_id, status="Started")
    fleet.azure.complete(event_id)


def test_coordinate_approves_once_when_the_last_hook_runner_has_prepared(
    azure: Simulator, tmp_path: Path, make_fleet: Callable[..., HookRunners]
) -> None:
    drained = tmp_path / "drained"
    fleet = make_fleet(azure)
    fleet.hook("vm2", "prepare/10-drain", waits_for(drained))
    fleet.start()
    event = announce(fleet)
    fleet.wait_for("vm1", event, prepared="ok")

    def prepares_last() -> None:
        assert fleet.approvals() == []
        drained.touch()

    playbook = tmp_path / "coordinate.yml"
    printed = find("roles/maintenance/README.md", "coordinate.yml").text
    playbook.write_text(printed.replace("maintenance_hosts: web", "maintenance_hosts: all"))
    course = {AFTER_DECISION: prepares_last, APPROVED: lambda: start_and_end(fleet, event)}
    # text, as in an inventory in INI form
    ran = fleet.coordinate(playbook=str(playbook), at=course, maintenance_types="Reboot, Freeze, Hibernate")
    assert ran.returncode == 0 and "event type 'Hibernate' is unknown" in ran.stderr, ran.stdout
    assert [(line["vm"], line["ids"]) for line in fleet.approvals()] == [("vm1", [event])]
    for name, row in rows(ran).items():
        assert (row["host"], row["vm"], row["event_id"]) == (name, name, event)
        assert all(row[step] for step in STEPS) and row["why_not"] == "", row
        assert (runs_of(fleet, name, "prepare/10-drain"), runs_of(fleet, name, "recover/10-drain")) == (1, 1)


@pytest.mark.all
@pytest.mark.parametrize("is_sent", [False, True])
def test_coordinate_approves_once_when_the_approving_host_is_lost(
    azure: Simulator, tmp_path: Path, down: Path, make_fleet: Callable[..., HookRunners], is_sent: bool
) -> None:
    fleet = make_fleet(azure, connection=flaky_connection(tmp_path, down)).start()
    event = announce(fleet, prepared="ok")
    if is_sent:
        azure.post("/faults", {**UNSENT, "kind": "lost-answer", "requests": "1"})
    azure.post("/faults", {**UNSENT, "requests": "2-" if is_sent else "1-"})

    def ends_later() -> None:
        wait_until(fleet.approvals, "the approval")
        start_and_end(fleet, event, by=30)

    def is_lost() -> None:
        if is_sent:
            wait_until(fleet.approvals, "the approval")
        (down / "vm1").touch()
        threading.Thread(target=ends_later, daemon=True).start()

    ran = fleet.coordinate(at={APPROVE: is_lost, APPROVED: (down / "vm1").unlink})
    assert [line["vm"] for line in fleet.approvals()] == ["vm1" if is_sent else "vm2"], ran.stdout
    assert all(row["started"] and row["recovered"] for row in rows(ran).values()), ran.stdout


@pytest.mark.all
def test_coordinate_does_not_approve_after_a_failed_preparation(
    azure: Simulator, make_fleet: Callable[..., HookRunners]
) -> None:
    fleet = make_fleet(azure)
    fleet.hook("vm2", "prepare/10-drain", "exit 3")
    fleet.start()
    event = announce(fleet)
    fleet.wait_for("vm2", event, prepared="failed")
    ran = fleet.coordinate(at={AFTER_DECISION: lambda: start_and_end(fleet, event, by=NOTICE_OF_LATE)})
    assert failed(ran) == {"vm2"} and fleet.approvals() == []
    report = rows(ran)
    assert report["vm1"]["why_not"] == "not approved: vm2: the preparation failed: prepare/10-drain failed"
    assert report["vm2"]["why_not"] == "the preparation failed: prepare/10-drain failed"
    assert report["vm1"]["prepared"] and report["vm2"]["prepared"] is None
    assert report["vm1"]["recovered"] and report["vm2"]["recovered"]


@pytest.mark.all
def test_coordinate_approves_through_azure_resource_manager(
    azure: Simulator, make_fleet: Callable[..., HookRunners]
) -> None:
    fleet = make_fleet(azure).start()
    fleet.hosts.environment["ARM_TOKEN"] = TOKEN
    event = announce(fleet, prepared="ok")
    ran = fleet.coordinate(at={APPROVED_BY_ARM: lambda: start_and_end(fleet, event)}, **by_arm(azure))
    assert ran.returncode == 0, ran.stdout
    assert requests_of_route(azure, "arm") == [200] and TOKEN not in ran.stdout
    assert all(row["approved"] and row["recovered"] for row in rows(ran).values())


@pytest.mark.all
def test_coordinate_in_check_mode_prints_the_decision_and_changes_nothing(
    azure: Simulator, make_fleet: Callable[..., HookRunners]
) -> None:
    fleet = make_fleet(azure).start()
    event = announce(fleet, prepared="ok")
    ran = fleet.coordinate("--check", maintenance_prepare="drain.yml")
    assert ran.returncode == 0, ran.stdout
    # Ansible wraps warnings
    assert "maintenance_prepare: the hook runners prepare and recover these hosts" in " ".join(ran.stderr.split())
    assert fleet.approvals() == [] and event in ran.stdout and DECIDE in ran.stdout
    assert {row["event_id"] for row in rows(ran).values()} == {event}


@pytest.mark.all
def test_coordinate_refuses_a_play_of_hosts_with_different_leaders(
    azure: Simulator, tmp_path: Path, make_fleet: Callable[..., HookRunners]
) -> None:
    fleet = make_fleet(azure, "vm1", vm2={**variables(azure, tmp_path, "vm2"), "maintenance_down": "false"})
    fleet.start()
    event = announce(fleet)
    (tmp_path / "drain.yml").write_text(
        json.dumps([{"ansible.builtin.file": {"path": str(tmp_path / "drained"), "state": "touch"}}])
    )
    given = {
        "maintenance_patience": 1,
        "maintenance_within": 5 * 3600,
        "maintenance_prepare": str(tmp_path / "drain.yml"),
    }
    ran = fleet.hosts.playbook(PLAYBOOK, given)
    # the other host prepares, and is not over in time; the text "false" does not keep it from that
    assert failed(ran) == {"vm1", "vm2"} and "run the maintenance once for each of them" in ran.stdout
    assert (tmp_path / "drained").exists() and fleet.approvals() == [] and event in ran.stdout, ran.stdout


@pytest.mark.all
def test_hosts_are_awaited_at_the_same_time_with_one_fork(
    azure: Simulator, tmp_path: Path, make_fleet: Callable[..., HookRunners]
) -> None:
    drained, log = tmp_path / "drained", tmp_path / "reads"
    fleet = make_fleet(azure)
    for name in fleet.daemons:
        fleet.hook(name, "prepare/10-drain", waits_for(drained))
        command = Path(fleet.command(name))
        command.write_text(command.read_text().replace("verb=$1;", f"echo {name} >> {log}; verb=$1;"))
    fleet.start()
    event = announce(fleet)

    took: list[float] = []

    def follows() -> None:
        begun, began = len(log.read_text().split()), time.monotonic()

        def turns() -> int:
            reads = log.read_text().split()[begun:]
            return sum(one != other for one, other in itertools.pairwise(reads))

        wait_until(lambda: turns() >= 6, "reads of both hosts in turn")
        took.append(time.monotonic() - began)
        drained.touch()

    course = {AFTER_DECISION: lambda: threading.Thread(target=follows, daemon=True).start()}
    ran = fleet.coordinate("--forks", "1", at={**course, APPROVED: lambda: start_and_end(fleet, event)})
    assert ran.returncode == 0, ran.stdout
    # with one wait after the other the reads change twice in a round of 15 seconds
    assert took[0] < 40


@pytest.mark.all
def test_hook_runner_info_reads_waits_and_names_a_pause(
    azure: Simulator, tmp_path: Path, make_fleet: Callable[..., HookRunners]
) -> None:
    fleet = make_fleet(azure, "vm1")

    def info(*words: str, **options: object) -> dict[str, Any]:
        return fleet.hosts.module("vm1", "hook_runner_info", *words, **options)

    missing = str(tmp_path / "missing")
    found = info(command=missing)
    assert (found["available"], found["state"], found["events"]) == (False, "not_installed", [])
    assert found["reason"].startswith(f"{missing}: ") and "; " in found["reason"] and not found["changed"]
    command = fleet.start().command("vm1")
    event = announce(fleet)
    found = info(command=command, wait_for="prepared", timeout=60)
    assert (found["available"], found["state"], found["reason"], found["reached"]) == (True, "running", "", True)
    assert (found["resource_name"], found["leader"], found["paused"]) == ("vm1", "external", None)
    assert (found["maintenance"]["phase"], found["maintenance"]["not_recovered"]) == ("prepared", [])
    (listed,) = found["events"]
    assert listed["event_id"] == event and listed["prepared_state"] == "ok" and listed["prepared"]
    assert (listed["listed"], listed["named"], listed["readable"]) == (True, sorted(listed["resources"]), True)
    # as an asynchronous task, too
    found = info("-B", "600", "-P", "1", command=command)
    assert found["finished"] and found.get("available"), found
    fleet.daemons["vm1"].command("pause", "--reason", "work")
    # check mode reads, and does not wait
    found = info("--check", command=command, wait_for="recovered", timeout=600)
    assert found["paused"]["reason"] == "work" and not found["reached"] and not found["changed"]
