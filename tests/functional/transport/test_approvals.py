# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Sending approvals: invalid ids, lost answers, a failing service."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from azure_scheduled_events import Imds, Selection, Tracker
from azure_scheduled_events.approval import send_approvals
from azure_scheduled_events.approval_plan import ApprovalCriteria, ApprovalOutcome, plan_approvals
from azure_scheduled_events.receipts import Receipts
from azure_scheduled_events.session import ConnectionOptions, ImdsSession
from support.simulator_process import Simulator
from support.transport.fault_helpers import fault, requests_of, schedule


class Approver:
    """Approves for vm1; time passes only while its session sleeps."""

    def __init__(self, azure: Simulator, folder: Path) -> None:
        self.azure = azure
        self.slept: list[float] = []
        self.imds = Imds(azure.endpoints["vm1"], timeout=60)
        self.receipts = Receipts(str(folder), self.imds.endpoint)

    def plan(self, *ids: str) -> list[ApprovalOutcome]:
        criteria = ApprovalCriteria(Selection.parse({"event_ids": ids, "affects": "any"}), "vm1", release_others=True)
        return plan_approvals(Tracker().observe(self.imds.events()), criteria, self.receipts)

    def session(self, within: float = 60, sleep: Callable[[float], None] | None = None) -> ImdsSession:
        options = ConnectionOptions(self.azure.endpoints["vm1"], ("2020-07-01",), "vm1", within)
        return ImdsSession(options, clock=lambda: sum(self.slept), sleep=sleep or self.slept.append)

    def send(self, plan: list[ApprovalOutcome], within: float = 60, late: float = 0) -> dict[str, str]:
        """Return the outcomes; the session has existed for ``late`` seconds before the first approval."""
        session = self.session(within)
        self.slept.append(late)
        outcomes, warnings = send_approvals(session, plan, self.receipts)
        assert warnings == []
        return {item.event_id: item.outcome for item in outcomes}

    def posts(self, start: int) -> list[int]:
        return [request["status"] for request in requests_of(self.azure)[start:] if request["method"] == "POST"]


@pytest.fixture
def approver(azure: Simulator, tmp_path: Path) -> Approver:
    return Approver(azure, tmp_path)


def test_each_of_several_events_is_approved_in_its_own_request(azure: Simulator, approver: Approver) -> None:
    ids = [schedule(azure), schedule(azure), schedule(azure, resources=["vm2"])]
    start = len(requests_of(azure))
    assert approver.send(approver.plan(*ids)) == dict.fromkeys(ids, "approved")
    assert approver.posts(start) == [200, 200, 200]
    assert [azure.get(f"/events/{event_id}")["approved_by"] for event_id in ids] == [["vm1"]] * 3
    assert all(approver.receipts.find(event_id) for event_id in ids)
    assert approver.send(approver.plan(*ids)) == dict.fromkeys(ids, "already_approved")
    assert approver.posts(start) == [200, 200, 200]


def test_accepted_approval_is_noted_before_the_next_is_sent(azure: Simulator, approver: Approver) -> None:
    ids = [schedule(azure) for _one in range(6)]
    plan, start = approver.plan(*ids), len(requests_of(azure))

    def killed(_seconds: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):  # while it waits for the limit of requests
        send_approvals(approver.session(sleep=killed), plan, approver.receipts)
    noted = [event_id for event_id in ids if approver.receipts.find(event_id)]
    assert 0 < len(noted) < 6 and approver.posts(start) == [200] * len(noted)


def test_approval_of_a_vanished_event_does_not_block_the_others(azure: Simulator, approver: Approver) -> None:
    ids = [schedule(azure) for _one in range(3)]
    plan = approver.plan(*ids)
    azure.post(f"/events/{ids[1]}/cancel")
    assert approver.send(plan) == {ids[0]: "approved", ids[1]: "not_found", ids[2]: "approved"}
    assert approver.receipts.find(ids[1]) is None


def test_approval_with_a_lost_answer_is_not_repeated_if_it_was_accepted(azure: Simulator, approver: Approver) -> None:
    azure.post("/knobs", {"start_delay": 0})
    event_id = schedule(azure)
    plan, start = approver.plan(event_id), len(requests_of(azure))
    fault(azure, "lost-answer", method="POST", requests="1-2")
    try:
        assert approver.send(plan) == {event_id: "approved"}
    finally:
        azure.post("/knobs", {"start_delay": "1h"})
    assert azure.get(f"/events/{event_id}")["status"] == "Started"
    assert 200 not in approver.posts(start)


def test_approval_that_was_lost_is_sent_again(azure: Simulator, approver: Approver) -> None:
    event_id = schedule(azure)
    plan = approver.plan(event_id)
    fault(azure, "lost-request", method="POST", requests="1-2")
    assert approver.send(plan) == {event_id: "approved"}
    assert azure.get(f"/events/{event_id}")["approved_by"] == ["vm1"]


@pytest.mark.parametrize("kind", ["server-error", "unavailable", "too-many-requests", "gone"])
def test_approval_at_a_busy_service_is_repeated_by_the_retry_table(
    azure: Simulator, approver: Approver, kind: str
) -> None:
    event_id = schedule(azure)
    plan = approver.plan(event_id)
    fault(azure, kind, method="POST", requests="1-2")
    assert approver.send(plan) == {event_id: "approved"}
    assert len([pause for pause in approver.slept if pause >= 1]) >= 2


def test_approval_of_an_event_that_ends_during_an_outage_is_not_found(azure: Simulator, approver: Approver) -> None:
    event_id = schedule(azure)
    plan = approver.plan(event_id)
    fault(azure, "server-error", method="POST")
    azure.post(f"/events/{event_id}/cancel")
    assert approver.send(plan) == {event_id: "not_found"}


def test_approvals_are_sent_only_while_there_is_time(azure: Simulator, approver: Approver) -> None:
    ids = [schedule(azure) for _one in range(20)]
    plan, start = approver.plan(*ids), len(requests_of(azure))
    assert set(approver.send(plan, late=60).values()) == {"failed"}
    assert approver.posts(start) == []
    assert set(approver.send(plan, within=3).values()) == {"approved", "failed"}
    assert set(approver.send(plan).values()) == {"approved"}


def test_events_that_were_not_sent_before_an_error_are_judged_by_the_next_document(
    azure: Simulator, approver: Approver
) -> None:
    ids = [schedule(azure) for _one in range(4)]
    plan, start = approver.plan(*ids), len(requests_of(azure))
    fault(azure, "unavailable", method="POST", requests="1")
    azure.post(f"/events/{ids[1]}/change", {"status": "Started"})
    azure.post(f"/events/{ids[2]}/change", {"resources": ["vm1", "vm2"]})
    azure.post(f"/events/{ids[3]}/cancel")
    assert list(approver.send(plan).values()) == ["approved", "started", "failed", "not_found"]
    assert approver.posts(start) == [503, 200]


def test_approval_without_a_writable_receipt_warns_once(azure: Simulator, approver: Approver, tmp_path: Path) -> None:
    ids = [schedule(azure), schedule(azure)]
    (tmp_path / "file").write_text("in the way")
    receipts = Receipts(str(tmp_path / "file"), "x")
    outcomes, warnings = send_approvals(approver.session(), approver.plan(*ids), receipts)
    assert [item.outcome for item in outcomes] == ["approved", "approved"]
    assert len(warnings) == 1 and "cannot be noted" in warnings[0]


def test_damaged_receipts_are_replaced_with_a_warning(azure: Simulator, approver: Approver, tmp_path: Path) -> None:
    ids = [schedule(azure), schedule(azure)]
    (tmp_path / "receipts.json").write_text("{")
    _outcomes, (warning,) = send_approvals(approver.session(), approver.plan(*ids), approver.receipts)
    assert warning.startswith(f"receipts: {tmp_path / 'receipts.json'} was damaged")
    assert all(approver.receipts.find(event_id) for event_id in ids)


@pytest.mark.parametrize(
    ("kind", "status", "change"),
    [
        ("server-error", 500, {"resources": ["vm1", "vm2"]}),
        ("server-error", 500, {"type": "Redeploy"}),
        ("bad-request", 400, {"resources": ["vm1", "vm2"]}),
    ],
)
def test_approval_of_a_changed_event_is_not_repeated(
    azure: Simulator, approver: Approver, kind: str, status: int, change: dict[str, object]
) -> None:
    event_id = schedule(azure)
    plan, start = approver.plan(event_id), len(requests_of(azure))
    azure.post(f"/events/{event_id}/change", change)
    fault(azure, kind, method="POST", requests="1")
    assert approver.send(plan) == {event_id: "failed"}
    assert approver.posts(start) == [status]


def test_approval_is_repeated_if_the_event_lists_its_vms_in_another_order(azure: Simulator, approver: Approver) -> None:
    event_id = schedule(azure, resources=["vm1", "vm2"])
    plan = approver.plan(event_id)
    azure.post(f"/events/{event_id}/change", {"resources": ["vm2", "vm1"]})
    fault(azure, "unavailable", method="POST", requests="1")
    assert approver.send(plan) == {event_id: "approved"}


def test_approval_is_not_repeated_before_the_events_are_read(azure: Simulator, approver: Approver) -> None:
    event_id = schedule(azure)
    plan, start = approver.plan(event_id), len(requests_of(azure))
    fault(azure, "server-error")
    assert approver.send(plan, within=30) == {event_id: "failed"}
    assert approver.posts(start) == [500]
    assert sum(approver.slept) <= 30 and approver.receipts.find(event_id) is None


@pytest.mark.parametrize("status", [401, 403, 405])
def test_refusal_that_concerns_no_event_is_not_repeated_per_event(
    azure: Simulator, approver: Approver, status: int
) -> None:
    ids = [schedule(azure) for _one in range(5)]
    plan, start = approver.plan(*ids), len(requests_of(azure))
    fault(azure, "status", status=status, method="POST")
    assert approver.send(plan) == dict.fromkeys(ids, "failed")
    assert approver.posts(start) == [status]


def test_refused_event_that_has_started_is_not_sent_again(azure: Simulator, approver: Approver) -> None:
    ids = [schedule(azure) for _one in range(2)]
    plan, start = approver.plan(*ids), len(requests_of(azure))
    azure.post(f"/events/{ids[0]}/change", {"status": "Started"})
    fault(azure, "bad-request", method="POST", requests="1")
    assert approver.send(plan) == dict.fromkeys(ids, "approved")
    assert approver.posts(start) == [400, 200]


def test_reused_id_with_another_not_before_is_approved_again(azure: Simulator, approver: Approver) -> None:
    event_id = schedule(azure)
    start = len(requests_of(azure))
    approver.send(approver.plan(event_id))
    assert approver.send(approver.plan(event_id)) == {event_id: "already_approved"}
    azure.post(f"/events/{event_id}/change", {"notice": "3h"})
    assert approver.send(approver.plan(event_id)) == {event_id: "approved"}
    assert approver.posts(start) == [200, 200]


def test_refused_event_that_is_still_scheduled_is_sent_again_after_a_second(
    azure: Simulator, approver: Approver
) -> None:
    event_id = schedule(azure)
    plan, start = approver.plan(event_id), len(requests_of(azure))
    fault(azure, "bad-request", method="POST", requests="1")
    assert approver.send(plan) == {event_id: "approved"}
    assert [request["method"] for request in requests_of(azure)[start:]] == ["POST", "GET", "POST"] and approver.posts(
        start
    ) == [400, 200]
    assert sum(approver.slept) >= 1 and azure.get(f"/events/{event_id}")["approved_by"] == ["vm1"]


def test_two_refusals_fail_with_the_reason_of_imds(azure: Simulator, approver: Approver) -> None:
    event_id = schedule(azure)
    plan, start = approver.plan(event_id), len(requests_of(azure))
    fault(azure, "bad-request", method="POST")
    (item,), _warnings = send_approvals(approver.session(), plan, approver.receipts)
    assert item.outcome == "failed" and "answered 400" in item.reason
    assert approver.posts(start) == [400, 400]
