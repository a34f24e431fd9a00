# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host may return anything in place of its events: it then counts as one that does not report."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import pytest
from ansible_collections.azure_imds.scheduled_events.plugins.action import (
    maintenance_info,
    maintenance_note,
    maintenance_wait,
)

EVENT = dict.fromkeys(["event_id", "event_type", "status", "key"], "a")
EVENT.update(resources=["vm1", "vm2"], not_before=None)
INFO = {"available": True, "resource_name": "vm1", "events": [EVENT], "note": {"events": [EVENT]}, "boot": ""}


def test_valid_result_is_returned(run_action):
    result, _ran = run_action(maintenance_info.ActionModule, INFO)
    assert not result.get("failed") and result["events"] == [EVENT]


@pytest.mark.parametrize(
    "garbage",
    [
        *({"events": events} for events in (5, "a", {}, [5], [{}])),
        *({name: ["vm1"]} for name in ("resource_name", "fault_domain", "boot", "server_time")),
        *({"note": note} for note in ("", [], {}, {"events": 5}, {"events": [{"event_id": 5}]})),
        *({"events": [dict(EVENT, **{name: 5})]} for name in EVENT),
        {"events": [dict(EVENT, resources=[5])]},
        # another event would be approved than the one that was decided about
        {"events": [dict(EVENT, event_id="b")]},
    ],
    ids=str,
)
def test_invalid_result_is_a_failure_of_the_host(run_action, garbage):
    result, _ran = run_action(maintenance_info.ActionModule, dict(INFO, **garbage))
    assert result["failed"] and "; examine the host" in result["msg"] and "events" not in result


@pytest.mark.parametrize(
    ("action", "options"),
    [(maintenance_note, {}), (maintenance_note, {"state": "absent"}), (maintenance_wait, {"timeout": 0})],
    ids=["write", "remove", "wait"],
)
@pytest.mark.parametrize("garbage", [{"events": [5]}, {"note": {"events": [{"event_id": 5}]}}], ids=str)
def test_invalid_result_of_note_or_wait_is_a_failure_of_the_host(run_action, action, options, garbage):
    result, _ran = run_action(action.ActionModule, {"outcome": "over", **garbage}, **options)
    assert result["failed"] and "; examine the host" in result["msg"] and "note" not in result


@pytest.mark.parametrize("found", ["run", {"run": 5}], ids=str)
def test_note_that_a_host_invents_is_not_taken_over(run_action, found):
    _result, ran = run_action(maintenance_note.ActionModule, {"failed": True, "found": found})
    assert len(ran) == 1


def test_host_that_answers_without_a_result_is_not_removed(run_action, monkeypatch):
    clock = itertools.count(0, 50)
    monkeypatch.setattr(maintenance_wait, "time", SimpleNamespace(monotonic=lambda: next(clock), sleep=int))
    note = {"note": {"events": [dict(EVENT, event_type="Preempt", status="Started")]}}
    answer = {"failed": True, "module_stderr": "no space left on device"}
    result, _ran = run_action(maintenance_wait.ActionModule, answer, variables={"maintenance__note": note}, timeout=900)
    assert result["outcome"] == "unreachable"
