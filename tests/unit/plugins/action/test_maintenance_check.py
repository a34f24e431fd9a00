# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role maintenance refuses options before it contacts a host."""

from __future__ import annotations

import os

import pytest
from ansible_collections.azure_imds.scheduled_events.plugins.action import maintenance_check

ROLE = os.path.join(
    os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(maintenance_check.__file__)))),
    "roles",
    "maintenance",
)
HOSTS = ["vm1", "vm2"]


@pytest.fixture
def check(run_action, tmp_path):
    """Return a function that checks the options of an entry point, in a play of two hosts."""

    def run(entry_point="prepare_and_approve", strategy="linear", batch=None, variables=None, **options):
        common = {
            "role_path": ROLE,
            "playbook_dir": str(tmp_path),
            "groups": {"all": HOSTS, "some": ["vm1"]},
            "ansible_play_hosts_all": HOSTS,
            "ansible_play_hosts": HOSTS,
            "ansible_play_batch": HOSTS if batch is None else batch,
            "ansible_forks": 1,
        }
        given = {**common, **(variables or {})}
        return run_action(maintenance_check.ActionModule, None, strategy, given, entry_point=entry_point, **options)[0]

    return run


@pytest.mark.parametrize("option", ["prepare", "recover"])
def test_missing_file_is_refused_with_the_searched_places(check, tmp_path, option):
    result = check(**{option: "tasks/drian.yml"})
    assert result["failed"]
    assert result["msg"].startswith(f"maintenance_{option}: no file tasks/drian.yml; searched for ")
    for folder in (str(tmp_path), os.getcwd()):
        assert os.path.join(folder, "tasks", "drian.yml") in result["msg"]


def test_missing_role_is_refused_with_the_searched_places(check, tmp_path):
    result = check(prepare="no_such_role")
    assert result["failed"] and result["msg"].startswith("maintenance_prepare: ")
    assert os.path.join(str(tmp_path), "roles", "no_such_role") in result["msg"]


def test_file_and_role_beside_the_playbook_are_found(check, tmp_path):
    (tmp_path / "drain.yml").write_text("[]\n")
    (tmp_path / "roles" / "undrain" / "tasks").mkdir(parents=True)
    result = check(prepare="drain.yml", recover="undrain")
    assert not result.get("failed") and not result["changed"]
    assert result["prepare"] == {"tasks": str(tmp_path / "drain.yml"), "role": ""}
    assert result["recover"] == {"tasks": "", "role": str(tmp_path / "roles" / "undrain")}


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("maintenance_recove", "maintenance_recover"),
        ("maintenence_recover", "maintenance_recover"),
        # the similarity of this one is the lowest
        ("maintenance_donw", "maintenance_down"),
    ],
)
def test_misspelt_variable_is_refused_with_the_right_name(check, name, meant):
    result = check(variables={name: "x.yml"})
    assert result["failed"] and f"{name}: no such option; did you mean {meant}?" in result["msg"]


@pytest.mark.parametrize("name", ["window", "recovered", "end", "with"])
def test_other_variables_of_the_same_prefix_are_the_users_own(check, name):
    assert not check(variables={f"maintenance_{name}": "at night"}).get("failed")


@pytest.mark.parametrize("entry_point", ["prepare_and_approve", "coordinate"])
@pytest.mark.parametrize("strategy", ["ansible.builtin.free", "host_pinned"])
def test_strategy_without_a_common_pace_is_refused(check, entry_point, strategy):
    result = check(entry_point, strategy=strategy)
    assert result["failed"] and "set strategy to ansible.builtin.linear" in result["msg"]


@pytest.mark.parametrize("strategy", ["linear", "ansible.builtin.linear", "debug"])
def test_strategy_with_a_common_pace_is_accepted(check, strategy):
    assert not check(strategy=strategy).get("failed")


@pytest.mark.parametrize(
    ("strategy", "forks", "warns"),
    [("host_pinned", 1, True), ("host_pinned", 2, False), ("ansible.builtin.free", 1, False)],
)
def test_fewer_forks_than_hosts_warn_only_under_host_pinned(check, strategy, forks, warns):
    result = check("wait_and_recover", strategy=strategy, variables={"ansible_forks": forks})
    assert not result.get("failed")
    expected = "1 of 2 hosts begin to wait only after others have recovered"
    assert [expected in warning for warning in result["warnings"]] == [True] * warns


@pytest.mark.parametrize(
    ("limits", "batch", "subject"),
    [
        ({"at_most": 1, "group": "no_such_group"}, None, "maintenance_group"),
        ({"at_most": 1, "group": ["all"]}, None, "maintenance_group"),
        ({"at_most": 1}, ["vm1"], "serial"),
    ],
)
def test_unusable_limits_are_refused(check, limits, batch, subject):
    result = check(limits=limits, batch=batch)
    assert result["failed"] and result["msg"].startswith(subject + ": ")


ARM = {"approve_by": "arm", "arm_endpoint": "https://management.azure.com", "arm_has_token": True}
VM = "/subscriptions/8d5b8fe2/resourceGroups/PRODUCTION/providers/Microsoft.Compute/virtualMachines/Web-1"


def test_arm_takes_the_vm_from_the_resource_id(check):
    arm = check(**ARM, arm_resource_id=VM)["arm"]
    assert arm == {"endpoint": "https://management.azure.com", "resource_id": VM, "vm": "Web-1"}


@pytest.mark.parametrize(
    "name", ["maintenance_approve_by", "maintenance_arm_endpoint", "maintenance_arm_resource_id", "id"]
)
def test_option_of_arm_that_the_host_itself_sets_is_refused(check, name):
    # any result of a module may have facts, which come before the inventory and the defaults
    result = check(**ARM, arm_resource_id=VM, variables={"ansible_facts": {name: VM}})
    assert result["failed"] and result["msg"].startswith(f"{name}: a fact of the host sets this variable")


def test_way_of_the_approval_that_the_host_itself_sets_is_refused(check):
    result = check(variables={"ansible_facts": {"maintenance_approve_by": "module", "id": VM}})
    assert result["failed"] and result["msg"].startswith(
        "maintenance_approve_by: a fact of the host sets this variable"
    )
    assert "; id: " not in result["msg"]
    # a host that approves nothing has to recover
    assert not check("wait_and_recover", variables={"ansible_facts": {"maintenance_approve_by": "module"}}).get(
        "failed"
    )


def test_events_of_the_caller_are_expected_until_they_are_over(check):
    event = {"event_id": "Ab-1", "event_type": "Reboot", "status": "Scheduled", "resources": ["vm1"]}
    over = {"change": "gone", "event": dict(event, event_id="Cd-2")}
    (expected,) = check(announced=[{"change": "appeared", "event": event}, over])["expected"]
    assert (expected["event_id"], expected["resources"]) == ("Ab-1", ["vm1"])


def test_unusable_events_of_the_caller_are_refused(check):
    result = check(events_from="caller", announced=[{"event": {"event_id": "x"}}])
    assert result["failed"] and "maintenance_announced[0]: event_type is missing" in result["msg"]


def test_unusable_ready_hooks_are_refused(check):
    result = check(ready_hooks=[{"use": "no_such_hook"}])
    assert result["failed"] and "maintenance_ready_hooks" in result["msg"]


def test_hosts_whose_hook_runners_prepare_are_refused(check):
    result = check(leader="external")
    assert result["failed"] and "use the entry point coordinate" in result["msg"]


def test_coordinate_refuses_limits_that_it_cannot_keep(check):
    limits = {"at_most": "50%", "one_fault_domain": True, "deadline": 60}
    result = check("coordinate", limits=limits, events_from="caller")
    assert result["failed"]
    for name in (*limits, "events_from"):
        assert f"maintenance_{name}: " in result["msg"]


def test_coordinate_warns_about_steps_without_an_effect(check):
    result = check("coordinate", variables={"maintenance_prepare": "drain.yml"})
    assert not result.get("failed")
    (warning,) = result["warnings"]
    assert warning.startswith("maintenance_prepare: the hook runners prepare and recover these hosts")


def test_all_problems_are_reported_together(check):
    result = check(strategy="free", prepare="drian.yml", limits={"at_most": 0}, variables={"maintenance_recove": "x"})
    for subject in ("strategy: ", "maintenance_prepare: ", "maintenance_at_most: ", "maintenance_recove: "):
        assert subject in result["msg"]
