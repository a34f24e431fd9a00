# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""maintenance_leader: external: hook runners prepare and recover; the playbook approves after all of them."""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from support.maintenance.control_plane import TOKEN, by_arm, requests_of_route
from support.maintenance.fleet import LATE, PLAYBOOK, failed, flaky_connection, variables
from support.maintenance.hook_runners import DECIDE, HookRunners
from support.maintenance.reports import rows
from support.recipes.printed import printed_in
from support.simulator_process import Simulator
from support.wait import wait_until

STEPS = ("prepared", "approved", "started", "over", "recovered")
EXTERNAL = {"maintenance_leader": "external"}
UNREACHABLE = {"ansible_connection": "ansible.builtin.ssh", "ansible_ssh_executable": "/bin/false"}
# a task that begins when the first decision was taken
AFTER_DECISION = "Follow the events further"
APPROVED = "Record the time of the approval"
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


def announce(fleet: HookRunners, *names: str, **changes: object) -> str:
    """Announce an event, and wait until the hook runners of these VMs know it, by default all."""
    event_id = str(fleet.azure.simulator.post("/events", {**LATE, **changes})["id"])
    for name in names or tuple(fleet.daemons):
        fleet.wait_for(name, event_id)
    return event_id


def start_and_end(fleet: HookRunners, event_id: str, *names: str, by: float = 2) -> None:
    """Let the event start after these seconds and end, when the hook runners of these VMs have observed it."""
    fleet.azure.advance(by)
    for name in names or tuple(fleet.daemons):
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

    (printed,) = [found for found in printed_in("roles/maintenance/README.md") if found.name == "coordinate.yml"]
    playbook = tmp_path / "coordinate.yml"
    playbook.write_text(printed.text.replace("maintenance_hosts: web", "maintenance_hosts: all"))
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
    event = announce(fleet)
    for name in fleet.daemons:
        fleet.wait_for(name, event, prepared="ok")
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
def test_coordinate_does_not_approve_for_a_vm_that_only_the_caller_names(
    azure: Simulator, make_fleet: Callable[..., HookRunners]
) -> None:
    fleet = make_fleet(azure).start()
    event = announce(fleet)
    for name in fleet.daemons:
        fleet.wait_for(name, event, prepared="ok")
    seen = {"event_id": event, "event_type": "Freeze", "status": "Scheduled", "resources": ["vm1", "vm3"]}
    ran = fleet.coordinate("--check", maintenance_announced=[seen])
    assert ran.returncode == 0 and fleet.approvals() == []
    assert {row["why_not"] for row in rows(ran).values()} == {
        "not approved: vm3: no host of this play is known to be this VM"
    }


@pytest.mark.all
def test_coordinate_does_not_approve_while_a_host_is_unreachable(
    azure: Simulator, make_fleet: Callable[..., HookRunners]
) -> None:
    fleet = make_fleet(azure, "vm1", vm2={**EXTERNAL, **UNREACHABLE}).start()
    event = announce(fleet)
    ran = fleet.coordinate(at={AFTER_DECISION: lambda: start_and_end(fleet, event, by=NOTICE_OF_LATE)})
    assert failed(ran) == {"vm2"} and fleet.approvals() == []
    report = rows(ran)
    assert report["vm1"]["why_not"].startswith(
        "not approved: vm2: no host of this play is known to be this VM (not known"
    )
    assert report["vm1"]["recovered"] and report["vm2"]["why_not"]


@pytest.mark.all
def test_coordinate_approves_a_second_event_that_comes_during_the_first(
    azure: Simulator, make_fleet: Callable[..., HookRunners]
) -> None:
    fleet = make_fleet(azure).start()
    first = announce(fleet)
    second: list[str] = []

    def second_comes() -> None:
        fleet.azure.advance(2)
        second.append(announce(fleet))
        ends.start()

    def both_end() -> None:
        # the playbook goes on while the first event lasts
        wait_until(lambda: len(fleet.approvals()) == 2, "the second approval")
        fleet.azure.complete(first)
        start_and_end(fleet, second[0])

    ends = threading.Thread(target=both_end, daemon=True)
    ran = fleet.coordinate(at={APPROVED: second_comes})
    assert ran.returncode == 0, ran.stdout
    assert [line["ids"] for line in fleet.approvals()] == [[first], [second[0]]]
    for name in fleet.daemons:
        assert runs_of(fleet, name, "recover/10-drain") >= 1


@pytest.mark.all
def test_coordinate_reports_a_hook_runner_that_does_not_run(
    azure: Simulator, make_fleet: Callable[..., HookRunners]
) -> None:
    fleet = make_fleet(azure).start("vm2")
    event = str(azure.post("/events", LATE)["id"])
    fleet.wait_for("vm1", event, prepared="ok")
    ran = fleet.coordinate(at={AFTER_DECISION: lambda: start_and_end(fleet, event, "vm1", by=NOTICE_OF_LATE)})
    assert failed(ran) == {"vm2"} and fleet.approvals() == []
    assert "the daemon does not run" in rows(ran)["vm2"]["why_not"]


@pytest.mark.all
def test_coordinate_in_check_mode_prints_the_decision_and_changes_nothing(
    azure: Simulator, make_fleet: Callable[..., HookRunners]
) -> None:
    fleet = make_fleet(azure).start()
    event = announce(fleet)
    for name in fleet.daemons:
        fleet.wait_for(name, event, prepared="ok")
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
def test_coordinate_refuses_a_type_that_is_close_to_a_known_one(
    azure: Simulator, make_fleet: Callable[..., HookRunners]
) -> None:
    ran = make_fleet(azure).coordinate(maintenance_types=["rebot"])
    assert failed(ran) == {"vm1", "vm2"} and "did you mean Reboot?" in ran.stdout


@pytest.mark.all
def test_coordinate_refuses_limits_that_it_cannot_keep(
    azure: Simulator, make_fleet: Callable[..., HookRunners]
) -> None:
    fleet = make_fleet(azure)
    limits = {"maintenance_at_most": "50%", "maintenance_one_fault_domain": True, "maintenance_deadline": 60}
    ran = fleet.coordinate(**limits, maintenance_events_from="caller")
    assert failed(ran) == {"vm1", "vm2"}
    for name in (*limits, "maintenance_events_from"):
        assert f"{name}: " in ran.stdout


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
def test_prepare_and_approve_refuses_hosts_whose_hook_runners_prepare(
    azure: Simulator, make_fleet: Callable[..., HookRunners], tmp_path: Path
) -> None:
    fleet = make_fleet(azure)
    role = {"name": "azure_imds.scheduled_events.maintenance", "tasks_from": "prepare_and_approve"}
    site = tmp_path / "site.yml"
    site.write_text(yaml.safe_dump([{"hosts": "all", "gather_facts": False, "tasks": [{"import_role": role}]}]))
    ran = fleet.hosts.playbook(str(site), {"maintenance_leader": "external"})
    assert failed(ran) == {"vm1", "vm2"} and "use the entry point coordinate" in ran.stdout


@pytest.mark.all
def test_coordinate_approves_through_azure_resource_manager(
    azure: Simulator, make_fleet: Callable[..., HookRunners]
) -> None:
    fleet = make_fleet(azure).start()
    fleet.hosts.environment["ARM_TOKEN"] = TOKEN
    event = announce(fleet)
    for name in fleet.daemons:
        fleet.wait_for(name, event, prepared="ok")
    ran = fleet.coordinate(at={APPROVED: lambda: start_and_end(fleet, event)}, **by_arm(azure))
    assert ran.returncode == 0, ran.stdout
    assert requests_of_route(azure, "arm") == [200] and TOKEN not in ran.stdout
    assert all(row["approved"] and row["recovered"] for row in rows(ran).values())
