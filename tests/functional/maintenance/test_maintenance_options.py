# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The role maintenance refuses wrong options, and finds files and roles of the user.

tests/unit/plugins/action/test_maintenance_check.py has the other refusals.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from support.maintenance.fleet import FREEZE, LATE, WAIT, Fleet, failed
from support.simulator_process import Simulator

pytestmark = pytest.mark.all

ROLE = "azure_imds.scheduled_events.maintenance"


def has_had_requests(azure: Simulator) -> bool:
    return bool(azure.get("/requests")["requests"])


def own_plays(folder: Path, *plays: dict[str, Any]) -> str:
    """Write a playbook of the user to a project folder."""
    playbook = folder / "site.yml"
    playbook.write_text(
        yaml.safe_dump([{"hosts": "all", "gather_facts": False, **play} for play in plays], sort_keys=False)
    )
    return str(playbook)


def entry(name: str) -> dict[str, Any]:
    return {"ansible.builtin.import_role": {"name": ROLE, "tasks_from": name}}


def test_wrong_options_are_refused_together_before_the_first_request(azure: Simulator, fleet: Fleet) -> None:
    ran = fleet.maintain(given={"maintenance_recove": "x.yml", "maintenance_types": ["rebot"]})
    assert failed(ran) == {"vm1", "vm2"}
    assert "maintenance_recove: " in ran.stdout and "did you mean Reboot?" in ran.stdout
    assert not has_had_requests(azure)


def test_missing_entry_point_is_named(fleet: Fleet, tmp_path: Path) -> None:
    ran = fleet.hosts.playbook(own_plays(tmp_path, {"roles": [ROLE]}))
    assert ran.returncode != 0 and "prepare_and_approve, wait_and_recover, coordinate or report" in ran.stdout


def test_duration_of_a_recovery_is_refused_before_the_host_waits(
    azure: Simulator, fleet: Fleet, tmp_path: Path
) -> None:
    play = own_plays(tmp_path, {"strategy": "free", "tasks": [entry("wait_and_recover")]})
    ran = fleet.hosts.playbook(play, {**fleet.steps(), "maintenance_patience": "1 hour"})
    assert failed(ran) == {"vm1", "vm2"} and "maintenance_patience: expected seconds as a number" in ran.stdout
    assert not has_had_requests(azure)


def test_batches_that_split_an_event_prevent_the_approval(azure: Simulator, fleet: Fleet, tmp_path: Path) -> None:
    azure.post("/events", LATE)
    play = own_plays(tmp_path, {"serial": 1, "tasks": [entry("prepare_and_approve")]})
    ran = fleet.hosts.playbook(play, fleet.steps())
    assert ran.returncode == 0, ran.stdout
    assert fleet.did("prepare") == {"vm1", "vm2"} and fleet.approvals() == []
    assert "vm2: no host of this play, or of its batch, is known to be this VM" in ran.stdout


def test_own_plays_with_roles_and_relative_files(azure: Simulator, fleet: Fleet, tmp_path: Path) -> None:
    """Files, roles, group_vars and templates are found beside the playbook of the user."""
    azure.post("/events", LATE)
    role = tmp_path / "roles" / "drain"
    (role / "tasks").mkdir(parents=True)
    (role / "handlers").mkdir()
    (role / "tasks" / "main.yml").write_text("- ansible.builtin.command: 'true'\n  notify: Reload\n")
    leave = f"echo {{{{ inventory_hostname }}}} {{{{ place }}}} >> {tmp_path}/drained"
    (role / "handlers" / "main.yml").write_text(f"- name: Reload\n  ansible.builtin.shell: {leave}\n")
    (tmp_path / "group_vars").mkdir()
    (tmp_path / "group_vars" / "all.yml").write_text("place: pool-1\n")
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks" / "undrain.yml").write_text(
        f"- ansible.builtin.shell: echo {{{{ inventory_hostname }}}} {{{{ place }}}} >> {tmp_path}/undrained\n"
    )
    play = own_plays(
        tmp_path,
        {"strategy": "linear", "tasks": [entry("prepare_and_approve")]},
        {"name": WAIT, "strategy": "host_pinned", "tasks": [entry("wait_and_recover")]},
    )
    given = {"maintenance_prepare": "drain", "maintenance_recover": "tasks/undrain.yml"}
    ran = fleet.hosts.playbook(play, given, at={WAIT: fleet.start_and_end_events})
    assert ran.returncode == 0, ran.stdout
    # a handler that a prepare role notifies has run before the approval
    assert (
        sorted((tmp_path / "drained").read_text().splitlines()) == ["vm1 pool-1", "vm2 pool-1"]
        and len(fleet.approvals()) == 1
    )
    assert sorted((tmp_path / "undrained").read_text().splitlines()) == ["vm1 pool-1", "vm2 pool-1"]


def test_playbook_without_preparation_approves_nothing(azure: Simulator, fleet: Fleet) -> None:
    azure.post("/events", FREEZE)
    ran = fleet.maintain(given={"maintenance_prepare": ""})
    assert ran.returncode == 0, ran.stdout
    assert fleet.did("prepare") == set() and fleet.did("recover") == {"vm1", "vm2"} and fleet.approvals() == []


def test_hook_seconds_are_at_most_the_time_that_is_left_less_five(azure: Simulator, tmp_path: Path) -> None:
    # the VM returns
    azure.post("/events", {**LATE, "type": "Preempt", "resources": ["vm1"], "notice": "25s", "impact_for": 0})
    seconds = tmp_path / "seconds"
    hook = {
        "use": "command",
        "prepare": ["sh", "-c", f"echo $HOOK_SECONDS >{seconds}"],
        "recover": ["true"],
        "state_directory": str(tmp_path / "records"),
    }
    given = {"maintenance_ready_hooks": [hook], "ready_hooks_directory": str(tmp_path / "library")}
    # the hook is the whole preparation
    ran = Fleet(azure, tmp_path).maintain("true", given={**given, "maintenance_prepare": ""})
    assert ran.returncode == 0, ran.stdout
    assert 0 < float(seconds.read_text()) <= 20
