# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The records survive the way to the disk and back."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hook_runner.maintenance.record import HookRun, Maintenance, Pause, State
from hook_runner.maintenance.record_json import from_json, to_json
from hook_runner.records import FAILED
from support.daemon.machine_driver import Driver, event, hook, rules


@pytest.fixture
def vm() -> Driver:
    """Return a host with a run, a request, an event of other VMs, one that is gone, and a pause."""
    driver = Driver(hook("prepare/10-drain"), policy=rules({"approve": "manual"}))
    driver.seconds(2, event(), event("e2", vms=["vm2"]), event("e3", vms=["vm3"]))
    driver.ask(release_others=True)
    driver.end_hook(FAILED, exit_status=3, output="no")
    driver.machine.pause("operator", driver.now.replace(year=2027), "work", driver.now)
    driver.seconds(4, event(), event("e2", vms=["vm2"]))
    return driver


def test_records_come_back_from_json_as_they_were(vm: Driver) -> None:
    state, maintenance = vm.records.state, vm.records.maintenance
    assert maintenance is not None and maintenance.runs and state.pause and state.observed and state.past
    assert from_json(Maintenance, json.loads(json.dumps(to_json(maintenance)))) == maintenance
    assert from_json(State, json.loads(json.dumps(to_json(state)))) == state
    assert from_json(HookRun, json.loads(json.dumps(to_json(maintenance.runs[0])))) == maintenance.runs[0]


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        (Maintenance, {"runs": None}),
        (Maintenance, {"began": 5}),
        (Maintenance, {"began": "2026-11-23T00:00:00"}),
        (Maintenance, {"number": "5"}),
        (Maintenance, {"future": 1}),
        (Maintenance, {"events": [{}]}),
        (Maintenance, {"timeline": [[]]}),
        (Maintenance, {"timeline": [["at"]]}),
        (Maintenance, {"given_up_by": 5}),
        (Maintenance, {"retried_after": "5"}),
        (Maintenance, {"runs": [{"state": "ok"}]}),
        (HookRun, {"event": []}),
        (HookRun, {"attempt": "1"}),
        (HookRun, {"reason": None}),
        (HookRun, {"output": 5}),
        (HookRun, {"exit_status": "0"}),
        (Pause, {"reason": 5}),
        (State, {"pause": 1}),
        (State, {"observed": [1]}),
    ],
    ids=str,
)
def test_record_with_another_member_or_a_value_of_another_type_is_refused(
    vm: Driver, kind: type[Any], change: dict[str, Any]
) -> None:
    state, maintenance = vm.records.state, vm.records.maintenance
    assert maintenance is not None
    good = {Maintenance: maintenance, HookRun: maintenance.runs[0], Pause: state.pause, State: state}[kind]
    with pytest.raises(ValueError):
        from_json(kind, {**to_json(good), **change})


@pytest.mark.parametrize("data", [{}, [], ""], ids=str)
def test_state_of_another_version_is_refused(data: Any) -> None:
    with pytest.raises(ValueError):
        from_json(State, data)
