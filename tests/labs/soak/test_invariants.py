# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Each invariant of the soak finds its violation in constructed evidence, and no other."""

from __future__ import annotations

from typing import Any

from soak.actions import PerformedAction
from soak.evidence import Approval, Evidence, Listed, Poll, listed_from, polls_from
from soak.hooks import HookRun
from soak.invariants import find_violations
from soak.plan import Action, Hook, Plan, Setup
from soak.testbed import Restart

A, B = "aaaaaaaa-1", "bbbbbbbb-2"
SETUP = Setup((Hook("prepare", "10-a", "works"), Hook("recover", "10-a", "works")))


def run(hook: str, began: float, how: str = "ok", key: str = A) -> HookRun:
    return HookRun(hook + "/10-a", key, "1", began, began + 0.1 if how else None, how)


def polls(*keys: str) -> list[Poll]:
    """Return a document for each second from 1 on; each letter of an argument is an event in it."""
    return [
        Poll(1.0 + at, frozenset({"a": A, "b": B}[letter] for letter in letters if letter != "-"))
        for at, letters in enumerate(keys)
    ]


def evidence(**given: Any) -> Evidence:
    """Return a good run with event A: seen at 1, prepared, approved at 2.5, missing at 4 and 5, recovered."""
    usual: dict[str, Any] = {
        "plan": Plan(0, SETUP, ()),
        "runs": [run("prepare", 1.5), run("recover", 5.0)],
        "approvals": [Approval(2.5, A, 200)],
        "polls": polls("a", "a", "a", "-", "-", "-"),
        "named_at": 0.0,
        "post_faults": False,
        "restarts": [],
        "performed": [],
        "history": [record(A)],
    }
    return Evidence(**{**usual, **given})


def record(key: str, **states: str) -> dict[str, Any]:
    hooks = [{"stage": stage, "name": "10-a", "state": states.get(stage, "ok")} for stage in ("prepare", "recover")]
    return {"events": [{"event_id": key.upper()}], "hooks": hooks}


def found(**given: Any) -> list[str]:
    return sorted({violation.invariant for violation in find_violations(evidence(**given))})


def test_run_without_fault_passes() -> None:
    assert found() == []


def test_approval_after_a_failed_preparation_is_found() -> None:
    assert found(runs=[run("prepare", 1.5, "failed"), run("recover", 5.0)]) == ["1 approval after preparation"]


def test_approval_before_the_preparation_is_found() -> None:
    assert found(runs=[run("prepare", 2.6), run("recover", 5.0)]) == ["1 approval after preparation"]


def test_approval_after_a_reboot_is_found_unless_the_effect_persists() -> None:
    rebooted = [Restart(2.0, 2.1, "reboot", frozenset({(A, ""), (A, "prepare/10-a"), (A, "recover/10-a")}))]
    assert found(restarts=rebooted) == ["1 approval after preparation"]
    persisting = Setup((SETUP.hooks[0]._replace(persists=True), SETUP.hooks[1]))
    assert found(restarts=rebooted, plan=Plan(0, persisting, ())) == []


def test_second_approval_is_found_unless_the_event_changed() -> None:
    twice = [Approval(2.0, A, 200), Approval(2.8, A, 200)]
    assert found(approvals=twice) == ["1 approval once"]
    assert found(approvals=twice, performed=[PerformedAction(2.4, 2.4, Action("retype", (A, "Reboot")))]) == []
    assert found(approvals=twice, post_faults=True) == []


def test_missing_recovery_is_found() -> None:
    assert found(runs=[run("prepare", 1.5)]) == ["3 recovered"]
    assert found(runs=[run("prepare", 1.5), run("recover", 5.0, "failed")]) == ["3 recovered"]


def test_recovery_for_another_event_counts() -> None:
    both = [run("prepare", 1.5), run("prepare", 1.7, key=B), run("recover", 5.0)]
    assert found(runs=both, polls=polls("ab", "ab", "ab", "-", "-"), history=[record(A), record(B)]) == []


def test_second_recovery_is_found() -> None:
    twice = [run("prepare", 1.5), run("recover", 5.5), run("recover", 7.0)]
    assert found(runs=twice, polls=polls("a", "a", "a", "-", "-", "-")) == ["3 recovered once"]
    assert found(runs=twice, history=[record(A, recover="interrupted")]) == []


def test_recovery_after_one_document_without_the_event_is_found() -> None:
    assert found(runs=[run("prepare", 1.5), run("recover", 4.5)]) == ["3 recovery after the end"]


def test_hook_that_marks_its_beginning_late_was_decided_on_before() -> None:
    late = [run("prepare", 5.05), run("recover", 5.2)]
    assert found(runs=late, approvals=[]) == []
    assert found(runs=late, approvals=[], polls=polls("a", "a", "-", "a", "-", "-")) == ["3 recovery after the end"]


def test_lost_event_is_found() -> None:
    assert found(history=[]) == ["5 event in the records"]
    assert found(history=[], performed=[PerformedAction(1.0, 1.0, Action("records-removed"))]) == []


def test_documents_follow_from_the_simulators_log_and_requests() -> None:
    line = {"id": A.upper(), "resources": ["vm1"]}
    lines = [
        {**line, "what": "scheduled", "time": "1970-01-01T00:00:01.000Z"},
        {**line, "what": "finished", "time": "1970-01-01T00:00:05.000Z"},
    ]
    listed = listed_from(lines)
    assert listed == {A: [Listed(1.0, ("vm1",)), Listed(5.0, ())]}
    request = {"method": "GET", "route": "scheduledevents", "status": 200, "fault": ""}
    sick = {**request, "moment": 3.0, "status": 503, "fault": "unavailable"}
    asked = [{**request, "moment": 0.5}, {**request, "moment": 2.0}, sick, {**request, "moment": 6.0}]
    assert polls_from(asked, listed, []) == [Poll(0.5, frozenset()), Poll(2.0, frozenset({A})), Poll(6.0, frozenset())]
    at_changes = polls_from(
        [{**request, "moment": 1.0004}, {**request, "moment": 1.01}, {**request, "moment": 4.9996}], listed, []
    )
    assert [(set(poll.keys), set(poll.uncertain)) for poll in at_changes] == [(set(), {A}), ({A}, set()), (set(), {A})]
