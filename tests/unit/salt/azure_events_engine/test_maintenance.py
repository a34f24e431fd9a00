# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The steps of a maintenance: prepare once, approve once, recover."""

from __future__ import annotations

from typing import Any

import pytest

from azure_events_engine.messages import Hint, Known
from azure_scheduled_events.tracking import GONE_AFTER, GONE_AFTER_A_RETURN
from support.salt_simulation.driver import EVENT, Driver, done, event, listing, prepared, record, status

BOTH = event("vm1", "vm2")


def test_one_job_prepares_all_minions_of_an_event() -> None:
    fleet = listing("vm1", "vm2")
    assert [(ask.minions, ask.kwargs) for ask in fleet.pending("prepare")] == [(("vm1", "vm2"), {"event_id": EVENT})]
    assert fleet.steps == ["draining"]


def test_approval_comes_once_when_all_are_prepared() -> None:
    fleet = listing("vm1", "vm2")
    fleet.prepare("vm1")
    assert fleet.count("approve_prepared") == 0
    fleet.prepare("vm2")
    (ask,) = fleet.pending("approve_prepared")
    assert ask.minions == ("vm1",)
    ready = {"resources": ["vm1", "vm2"], "event_type": "Reboot"}
    assert ask.kwargs == {"event_id": EVENT, **ready, "forced": False}
    fleet.answer("approve_prepared", {"vm1": done("approved")})
    fleet.wait(60)
    assert fleet.count("approve_prepared") == 1
    assert fleet.steps == ["draining", "prepared", "approved"]


def test_vm_that_only_another_minion_lists_withholds_the_approval() -> None:
    """The backends of IMDS differ: the document that vm1 read names vm1 alone."""
    fleet = Driver("vm1", "vm2")
    fleet.poll({"vm1": status("vm1", event("vm1")), "vm2": status("vm2", BOTH)})
    fleet.prepare("vm1")
    fleet.prepare("vm2", outcome="failed", reason="code 7")
    assert [row["withheld"] for row in fleet.request("status")["rows"]] == ["vm2: minion vm2: failed: code 7"] * 2
    fleet.wait(6)
    assert fleet.count("approve_prepared") == 0
    fleet.prepare("vm2")
    (ask,) = fleet.pending("approve_prepared")
    assert ask.kwargs["resources"] == ["vm1", "vm2"]


def test_vm_that_left_the_event_does_not_withhold_the_approval() -> None:
    fleet = listing("vm1", "vm2")
    fleet.prepare("vm1")
    fleet.prepare("vm2", outcome="no_steps")
    for _answer in range(2):
        assert fleet.count("approve_prepared") == 0
        fleet.wait(GONE_AFTER)
        fleet.poll({"vm1": status("vm1", event("vm1"), records=[record()]), "vm2": status("vm2", event("vm1"))})
    (ask,) = fleet.pending("approve_prepared")
    assert (ask.minions, ask.kwargs["resources"]) == (("vm1",), ["vm1"])


def test_list_of_a_silent_minion_counts_until_its_key_is_deleted() -> None:
    """vm2 was deleted: its minion does not answer again, and Azure names vm1 alone."""
    fleet = listing("vm1", "vm2")
    fleet.prepare("vm1")
    alone = {"vm1": status("vm1", event("vm1"), records=[record()])}
    for _answer in range(3):
        fleet.poll(alone)
        fleet.wait(6)
    assert fleet.count("approve_prepared") == 0
    fleet.give(Known(frozenset({"vm1"})))
    fleet.poll(alone)
    (ask,) = fleet.pending("approve_prepared")
    assert (ask.minions, ask.kwargs["resources"]) == (("vm1",), ["vm1"])


def test_minion_of_the_event_is_polled_without_a_hint() -> None:
    fleet = Driver("vm1", "vm2")
    fleet.wait(3)
    fleet.answer("status", {"vm1": status("vm1"), "vm2": status("vm2")})
    before = fleet.count("status", "vm2")
    fleet.poll({"vm1": status("vm1", BOTH)})
    fleet.wait(3)
    assert fleet.count("status", "vm2") > before


def test_recovery_waits_while_the_event_reappears() -> None:
    fleet = prepared("vm1")
    for _time in range(3):
        fleet.poll({"vm1": status("vm1", records=[record()])})
        fleet.poll({"vm1": status("vm1", event("vm1"), records=[record()])})
    assert fleet.count("recover") == 0
    fleet.see_over("vm1")
    assert fleet.count("recover") == 1


def test_error_of_imds_does_not_end_the_event() -> None:
    fleet = prepared("vm1")
    for _time in range(3):
        fleet.poll({"vm1": status(None, records=[record()], available=False, reason="IMDS answered 503")})
        fleet.wait(GONE_AFTER)
    assert fleet.count("recover") == 0
    fleet.see_over("vm1")
    assert fleet.count("recover") == 1


@pytest.mark.parametrize(
    ("restart_when", "state"),
    [
        ("never", "Scheduled"),
        ("never", "Started"),
        ("gone", "Scheduled"),
        ("over", "Scheduled"),
        ("listed", "Scheduled"),
    ],
)
def test_event_that_came_back_is_over_after_a_minute_without_it(restart_when: str, state: str) -> None:
    absent = status("vm1", records=[record()])
    fleet = prepared("vm1")
    fleet.see_over("vm1")
    fleet.answer("recover", {"vm1": done("recovered" if restart_when == "over" else "still_listed")})
    if restart_when in ("gone", "over"):
        fleet.restart()
    fleet.poll({"vm1": status("vm1", event("vm1", status=state), records=[record()])})
    if restart_when == "listed":
        fleet.restart()
    fleet.poll({"vm1": absent})
    fleet.wait(GONE_AFTER_A_RETURN - 5)
    fleet.poll({"vm1": absent})
    assert fleet.count("recover") == 1
    fleet.wait(5)
    fleet.poll({"vm1": absent})
    assert fleet.count("recover") == 2


def test_vms_of_an_event_count_while_its_resources_are_unreadable() -> None:
    """vm2 is prepared, but reads that the event has no VMs: it may affect any."""
    fleet = Driver("vm1", "vm2")
    fleet.poll({"vm1": status("vm1", event("vm1")), "vm2": status("vm2", BOTH)})
    fleet.prepare("vm2")
    unread = status("vm2", event(readable=False, selected=False, not_selected_because="affects"), records=[record()])
    for _answer in range(2):
        fleet.poll({"vm2": unread})
        fleet.wait(GONE_AFTER)
    fleet.prepare("vm1")
    fleet.wait(6)
    assert fleet.count("approve_prepared") == 0 and fleet.count("recover") == 0
    rows = {row["vm"]: row["why_not"] for row in fleet.request("status")["rows"]}
    assert rows == {"vm1": None, "vm2": "its last document does not list this event for it"}
    fleet.poll({"vm1": status("vm1", event("vm1"), records=[record()]), "vm2": status("vm2", BOTH, records=[record()])})
    fleet.wait(6)
    assert fleet.pending("approve_prepared")[0].kwargs["resources"] == ["vm1", "vm2"]


@pytest.mark.parametrize(
    ("changed", "records", "reason"),
    [
        ({"readable": False}, [record()], "the VMs that it affects are not readable"),
        (
            {"status": "Started"},
            [],
            "it has started; there is nothing left to approve; vm1: it is not prepared for this event",
        ),
    ],
)
def test_reason_in_the_event_is_given_once(changed: dict[str, Any], records: list[dict[str, Any]], reason: str) -> None:
    fleet = Driver("vm1")
    for _answer in range(2):
        fleet.poll({"vm1": status("vm1", event("vm1", **changed), records=records)})
    assert [row["withheld"] for row in fleet.request("status")["rows"]] == [reason]
    assert fleet.count("approve_prepared") == 0


def test_first_answer_that_lacks_the_event_is_the_reason() -> None:
    fleet = Driver("vm1", "vm2")
    fleet.poll({"vm1": status("vm1", BOTH), "vm2": status("vm2")})
    rows = {row["vm"]: row["why_not"] for row in fleet.request("status")["rows"]}
    assert rows["vm2"] == "it does not list this event for itself"


def test_poll_lost_before_the_minion_connected_is_repeated_at_its_first_hint() -> None:
    fleet = Driver("vm1")
    fleet.wait(1.5)
    assert fleet.count("status", "vm1") == 1
    fleet.hint_only("vm1")
    fleet.wait(0.5)
    assert fleet.count("status", "vm1") == 2


def test_minion_with_failing_imds_is_polled_again_soon() -> None:
    fleet = listing("vm1", "vm2")
    for _attempt in range(6):
        fleet.prepare("vm1", outcome="unavailable")
        fleet.wait(1)
        fleet.answer("status", {"vm1": status("vm1", BOTH)})
        fleet.wait(5)
    assert fleet.count("prepare", "vm1") == 7
    fleet.poll({"vm1": status(None, available=False, reason="IMDS answered 503")})
    before = fleet.count("status", "vm1")
    fleet.wait(6)
    assert fleet.count("status", "vm1") > before


def test_second_minion_approves_when_the_first_cannot() -> None:
    fleet = prepared("vm1", "vm2")
    fleet.answer("approve_prepared", {"vm1": done("unavailable", "IMDS answered 503")})
    assert [ask.minions for ask in fleet.pending("approve_prepared")] == [("vm1",), ("vm2",)]
    fleet.answer("approve_prepared", {"vm2": done("approved")})
    fleet.wait(30)
    assert fleet.count("approve_prepared") == 2 and "approved" in fleet.steps


def test_refused_approval_is_tried_again_and_its_reason_is_shown() -> None:
    fleet = prepared("vm1")
    fleet.answer("approve_prepared", {"vm1": done("failed", "IMDS answered 400")})
    assert fleet.reason == "vm1: failed: IMDS answered 400"
    fleet.wait(6)
    assert fleet.count("approve_prepared") == 2
    (row,) = fleet.request("status")["rows"]
    assert (row["waiting_for"], row["withheld"]) == ("answer to the approval", "vm1: failed: IMDS answered 400")


@pytest.mark.parametrize("outcome", ["failed", "not_selected", "no_steps", "busy"])
def test_minion_that_is_not_prepared_holds_the_approval_with_its_answer(outcome: str) -> None:
    fleet = listing("vm1", "vm2")
    fleet.prepare("vm1")
    fleet.prepare("vm2", outcome=outcome, reason="step 1 ended with code 7")
    rows = {row["vm"]: row for row in fleet.request("status")["rows"]}
    assert rows["vm1"]["prepared"] == "prepared" and rows["vm1"]["why_not"] is None
    assert rows["vm2"]["why_not"] == f"minion vm2: {outcome}: step 1 ended with code 7"
    assert fleet.count("approve_prepared") == 0


def test_event_that_the_minion_does_not_select_is_not_prepared() -> None:
    fleet = Driver("vm1")
    fleet.poll({"vm1": status("vm1", event("vm1", selected=False, not_selected_because="types"))})
    fleet.wait(6)
    (row,) = fleet.request("status")["rows"]
    assert fleet.count("prepare") == 0 and row["why_not"] == "minion vm1: its selection excludes the event (types)"


def test_silent_minion_withholds_the_approval_until_it_answers() -> None:
    fleet = Driver("vm1", "vm2")
    fleet.poll({"vm1": status("vm1", BOTH)})
    fleet.prepare("vm1")
    fleet.wait(60)
    assert fleet.count("approve_prepared") == 0 and fleet.reason == "vm2: minion vm2 does not answer"
    fleet.poll({"vm1": status("vm1", BOTH, records=[record()]), "vm2": status("vm2", BOTH)})
    fleet.prepare("vm2")
    assert fleet.count("approve_prepared") == 1


def test_failed_preparation_is_tried_three_times() -> None:
    fleet = listing("vm1")
    for _number in range(4):
        fleet.prepare("vm1", outcome="failed", reason="code 7")
        fleet.answer("status", {"vm1": status("vm1", event("vm1"), records=[record(state="prepare_failed")])})
        fleet.wait(70, 5)
    assert fleet.count("prepare") == 3 and "failed" in fleet.steps


def test_vm_without_a_minion_holds_the_approval() -> None:
    fleet = Driver("vm1")
    fleet.poll({"vm1": status("vm1", event("vm1", "unmanaged"))})
    fleet.prepare("vm1")
    assert fleet.count("approve_prepared") == 0 and fleet.reason == "unmanaged: no minion has this VM"


def test_unknown_resources_approve_covers_a_vm_without_a_minion() -> None:
    fleet = Driver("vm1", unknown_resources="approve")
    fleet.poll({"vm1": status("vm1", event("vm1", "unmanaged"))})
    fleet.prepare("vm1")
    assert fleet.pending("approve_prepared")[0].kwargs["resources"] == ["vm1", "unmanaged"]


def test_unknown_resources_approve_excludes_vms_of_silent_minions() -> None:
    fleet = Driver("vm1", "silent.example.com", unknown_resources="approve")
    fleet.poll({"vm1": status("vm1", event("vm1", "unmanaged"))})
    fleet.prepare("vm1")
    assert fleet.count("approve_prepared") == 0 and "silent.example.com" in fleet.reason


def test_recovery_follows_the_end_and_ends_the_maintenance() -> None:
    fleet = prepared("vm1")
    fleet.answer("approve_prepared", {"vm1": done("approved")})
    fleet.poll({"vm1": status("vm1", event("vm1", status="Started"), records=[record()])})
    assert fleet.count("recover") == 0
    fleet.poll({"vm1": status("vm1", records=[record()])})
    assert fleet.count("recover") == 1
    fleet.answer("recover", {"vm1": done("recovered")})
    fleet.wait(GONE_AFTER)
    fleet.poll({"vm1": status("vm1")})
    assert fleet.steps == ["draining", "prepared", "approved", "started", "over", "recovered"]
    fleet.wait(60)
    assert fleet.count("recover") == 1


def test_failed_recovery_is_retried_without_limit() -> None:
    fleet = prepared("vm1")
    fleet.see_over("vm1")
    for _number in range(20):
        fleet.answer("recover", {"vm1": done("failed", "code 1")})
        fleet.wait(10)
        fleet.answer("status", {"vm1": status("vm1", records=[record(state="recover_failed")])})
        fleet.wait(60)
        fleet.answer("status", {"vm1": status("vm1", records=[record(state="recover_failed")])})
    assert fleet.count("recover") >= 20 and "recovered" not in fleet.steps


def test_minion_that_returns_after_hours_recovers() -> None:
    fleet = Driver("vm1", "vm2")
    fleet.wait(3)
    fleet.poll({"vm2": status("vm2")})
    fleet.wait(8 * 3600, 60)
    fleet.hint("vm1")
    fleet.answer("status", {"vm1": status("vm1", records=[record()])})
    assert [ask.minions for ask in fleet.pending("recover")] == [("vm1",)]


def test_preparation_by_hand_is_not_recovered() -> None:
    fleet = Driver("vm1")
    fleet.poll({"vm1": status("vm1", records=[record("")])})
    fleet.wait(600, 5)
    assert fleet.count("recover") == 0


def test_two_events_of_one_minion_end_in_one_recovery() -> None:
    fleet = Driver("vm1")
    first, second = event("vm1", event_id="A"), event("vm1", event_id="B")
    fleet.poll({"vm1": status("vm1", first, second)})
    fleet.prepare("vm1", event_id="A")
    fleet.wait(1)
    fleet.prepare("vm1", event_id="B")
    both = [record("a"), record("b")]
    fleet.poll({"vm1": status("vm1", second, records=both)})
    fleet.wait(30)
    assert fleet.count("recover") == 0
    fleet.poll({"vm1": status("vm1", records=both)})
    assert fleet.count("recover") == 1
    (ask,) = fleet.pending("recover")
    fleet.answer("recover", {"vm1": done("recovered", event_id=ask.kwargs["event_id"])})
    fleet.wait(GONE_AFTER)
    fleet.poll({"vm1": status("vm1")})
    fleet.wait(30)
    assert fleet.count("recover") == 1 and fleet.steps.count("recovered") == 2


def test_lost_return_of_a_preparation_is_read_from_the_record() -> None:
    fleet = listing("vm1")
    fleet.wait(20)
    fleet.answer("status", {"vm1": status("vm1", event("vm1"), records=[record()])})
    assert fleet.count("approve_prepared") == 1 and fleet.count("prepare") == 1


def test_running_preparation_is_not_repeated() -> None:
    fleet = listing("vm1")
    for _number in range(20):
        fleet.wait(30)
        fleet.answer("status", {"vm1": status("vm1", event("vm1"), records=[record(state="preparing")], working=EVENT)})
    fleet.prepare("vm1")
    assert fleet.count("prepare") == 1 and fleet.count("approve_prepared") == 1


def test_interrupted_preparation_is_repeated_within_seconds() -> None:
    fleet = listing("vm1")
    interrupted = status("vm1", event("vm1"), records=[record(state="preparing")])
    for _number in range(2):
        fleet.poll({"vm1": interrupted})
    assert fleet.count("prepare") == 2


def test_preparation_of_an_earlier_boot_is_repeated() -> None:
    fleet = Driver("vm1")
    fleet.poll({"vm1": status("vm1", event("vm1"), records=[record(this_boot=False)])})
    assert fleet.count("prepare") == 1 and fleet.count("approve_prepared") == 0


def test_restarted_engine_polls_before_it_prepares_and_recovers() -> None:
    fleet = prepared("vm1")
    fleet.restart()
    fleet.wait(20)
    assert fleet.count("prepare") == 1 and fleet.count("recover") == 0
    fleet.answer("status", {"vm1": status("vm1", records=[record()])})
    fleet.wait(5)
    fleet.answer("status", {"vm1": status("vm1", records=[record()])})
    assert fleet.count("recover") == 1 and "recovered" not in fleet.steps
    fleet.answer("recover", {"vm1": done("recovered")})
    assert fleet.steps[-1] == "recovered"


def test_vm_that_was_named_before_a_restart_counts_until_answers_lack_it() -> None:
    fleet = Driver("vm1", "vm2")
    fleet.poll({"vm1": status("vm1", BOTH)})
    fleet.restart()
    alone = {"vm1": status("vm1", event("vm1"), records=[record()]), "vm2": status("vm2")}
    fleet.poll(alone)
    fleet.wait(GONE_AFTER)
    assert fleet.count("approve_prepared") == 0
    fleet.poll(alone)
    assert fleet.pending("approve_prepared")[0].kwargs["resources"] == ["vm1"]


def test_record_takes_precedence_over_the_return() -> None:
    fleet = listing("vm1")
    fleet.poll({"vm1": status("vm1", records=[record()])})
    fleet.prepare("vm1", outcome="not_listed")
    fleet.wait(GONE_AFTER)
    fleet.poll({"vm1": status("vm1", records=[record()])})
    assert fleet.count("recover") == 1 and "recovered" not in fleet.steps


def test_restarted_minion_is_not_prepared_until_it_reports_it() -> None:
    fleet = listing("vm1", "vm2")
    fleet.prepare("vm1")
    fleet.give(Hint("vm1", started=True))
    fleet.prepare("vm2")
    fleet.wait(3)
    assert fleet.count("approve_prepared") == 0 and fleet.count("prepare", "vm1") == 1
    fleet.answer("status", {"vm1": status("vm1", BOTH, records=[record(this_boot=False)])})
    assert fleet.count("prepare", "vm1") == 2 and fleet.count("approve_prepared") == 0
    fleet.prepare("vm1")
    assert fleet.count("approve_prepared") == 1


def test_forged_starts_of_a_minion_do_not_hold_its_approval() -> None:
    fleet = listing("vm1")
    for _number in range(20):
        fleet.give(Hint("vm1", started=True))
        fleet.wait(1)
        fleet.answer("status", {"vm1": status("vm1", event("vm1"), records=[record()])})
    assert fleet.count("approve_prepared") == 1


def test_old_answers_are_renewed_before_the_approval() -> None:
    fleet = listing("vm1", "vm2")
    fleet.prepare("vm1")
    fleet.wait(25)
    fleet.prepare("vm2")
    assert fleet.count("approve_prepared") == 0
    fleet.wait(1)
    fleet.answer("status", {"vm1": status("vm1", BOTH, records=[record()])})
    assert fleet.count("approve_prepared") == 1


def test_vm_that_another_event_interrupts_is_not_ready() -> None:
    """Also while one answer lacks that event, which another minion lists as an advice."""
    fleet = Driver("vm1", "vm2")
    other = event("vm1", event_id="other", status="Started")
    fleet.poll({"vm1": status("vm1", event("vm1"), other, records=[record()])})
    fleet.poll({"vm2": status("vm2", event("vm2", event_id="other", kind="SpotRebalanceRecommendation"))})
    fleet.poll({"vm1": status("vm1", event("vm1"), records=[record()])})
    fleet.wait(10)
    assert fleet.count("approve_prepared") == 0
    assert "another event has started on minion vm1" in fleet.request("status")["rows"][0]["withheld"]


def test_advice_does_not_interrupt_its_vm() -> None:
    fleet = Driver("vm1")
    advice = event("vm1", event_id="advice", kind="SpotRebalanceRecommendation", status="Started")
    for _answer in range(2):
        fleet.poll({"vm1": status("vm1", event("vm1"), advice, records=[record()])})
    assert fleet.count("approve_prepared") == 1


def test_most_urgent_event_comes_first_and_preempt_neither_waits_nor_delays_others() -> None:
    fleet = Driver("vm1", "vm2", "vm3", at_once=1)
    fleet.poll(
        {
            "vm1": status("vm1", event("vm1", event_id="later")),
            "vm2": status("vm2", event("vm2", event_id="sooner", not_before="2026-11-22T11:00:00Z")),
            "vm3": status("vm3", event("vm3", event_id="evicted", kind="Preempt", not_before="2026-11-22T11:00:30Z")),
        }
    )
    fleet.prepare("vm2", event_id="sooner")
    fleet.wait(1)
    fleet.poll({"vm3": status("vm3", event("vm3", event_id="second", kind="Preempt"))})
    fleet.wait(6)
    # a slow preparation of vm1 does not delay an eviction
    assert [ask.kwargs["event_id"] for ask in fleet.pending("prepare")] == ["evicted", "sooner", "later", "second"]


@pytest.mark.parametrize(("not_before", "ends_after"), [("2026-11-22T10:17:10Z", 600), ("2026-11-22T10:31:40Z", 900)])
def test_evicted_vm_counts_as_gone_when_its_time_has_come(not_before: str, ends_after: float) -> None:
    fleet = Driver("vm1")
    fleet.poll({"vm1": status("vm1", event("vm1", kind="Terminate", not_before=not_before))})
    fleet.prepare("vm1", kind="Terminate")
    fleet.wait(ends_after - 60, 5)
    assert "over" not in fleet.steps
    fleet.wait(120, 5)
    assert fleet.steps[-1] == "over" and not fleet.state.maintenances


@pytest.mark.parametrize(
    ("changed", "clause"),
    [
        ({"kind": "Melt"}, "its type 'Melt' is unknown"),
        ({"source": "Neighbour"}, "its source 'Neighbour' is unknown"),
        ({"resource_type": "Disk"}, "its resource type 'Disk' is unknown"),
    ],
)
def test_unknown_value_that_one_minion_lists_withholds_the_approval(changed: dict[str, str], clause: str) -> None:
    fleet = Driver("vm1", "vm2")
    fleet.poll({"vm1": status("vm1", BOTH), "vm2": status("vm2", event("vm1", "vm2", **changed))})
    fleet.prepare("vm1")
    fleet.prepare("vm2", kind=changed.get("kind", "Reboot"))
    fleet.wait(6)
    assert fleet.count("approve_prepared") == 0 and clause in fleet.reason
    fleet.request("approve", force=True)
    (ask,) = fleet.pending("approve_prepared")
    assert ask.kwargs["forced"]


def test_only_a_person_releases_an_event_whose_status_becomes_unknown() -> None:
    fleet = Driver("vm1")
    for _answer in range(2):
        fleet.poll({"vm1": status("vm1", event("vm1", status="Paused"), records=[record()])})
    assert fleet.count("approve_prepared") == 0
    (row,) = fleet.request("status")["rows"]
    assert row["withheld"] == "its status 'Paused' is unknown"
    fleet.request("approve", force=True)
    (ask,) = fleet.pending("approve_prepared")
    assert ask.kwargs["forced"]


def test_event_of_an_unknown_status_concerns_no_other_event_of_the_minion() -> None:
    fleet = Driver("vm1")
    other = event("vm1", event_id="other", status="Paused")
    fleet.poll({"vm1": status("vm1", event("vm1"), other)})
    assert [ask.kwargs["event_id"] for ask in fleet.pending("prepare")] == [EVENT]
    fleet.prepare("vm1")
    assert [ask.kwargs["event_id"] for ask in fleet.pending("approve_prepared")] == [EVENT]
    over = status("vm1", other, records=[record()])
    fleet.poll({"vm1": over})
    fleet.wait(GONE_AFTER)
    fleet.poll({"vm1": over})
    assert [ask.kwargs["event_id"] for ask in fleet.pending("recover")] == [EVENT]


def test_minion_prepares_again_when_the_event_becomes_more_severe() -> None:
    """vm2 lists it as a Redeploy before vm1 does."""
    fleet = Driver("vm1", "vm2")
    severe = event("vm1", "vm2", kind="Redeploy")
    fleet.poll({"vm1": status("vm1", event("vm1", "vm2", kind="Freeze")), "vm2": status("vm2", severe)})
    fleet.prepare("vm1", kind="Freeze")
    fleet.prepare("vm2", kind="Redeploy")
    fleet.poll({"vm1": status("vm1", severe, records=[record(kind="Freeze")])})
    assert fleet.count("prepare", "vm1") == 2 and fleet.count("approve_prepared") == 0
    fleet.prepare("vm1", kind="Redeploy")
    assert fleet.count("approve_prepared") == 1


def test_preparation_for_a_less_severe_type_than_listed_does_not_count() -> None:
    """The backends of IMDS differ: the document of the preparation has another type than that of the status."""
    fleet = Driver("vm1")
    fleet.poll({"vm1": status("vm1", event("vm1", kind="Redeploy"))})
    fleet.prepare("vm1", kind="Freeze")
    fleet.wait(1)
    assert fleet.count("approve_prepared") == 0 and fleet.count("prepare") == 1
    for approvals in (0, 1):
        fleet.poll({"vm1": status("vm1", event("vm1", kind="Freeze"), records=[record(kind="Freeze")])})
        assert fleet.count("approve_prepared") == approvals
        fleet.wait(2)


def test_minions_approve_in_the_order_of_the_names_of_their_vms() -> None:
    fleet = Driver("id-a", "id-b")
    both = event("vmb", "VMa", "vmb")
    fleet.poll({"id-a": status("vmb", both), "id-b": status("VMa", both)})
    fleet.prepare("id-a", "id-b")
    fleet.answer("approve_prepared", {"id-b": done("failed")})
    assert [ask.minions for ask in fleet.pending("approve_prepared")] == [("id-b",), ("id-a",)]


def test_one_answer_after_a_start_of_the_engine_is_not_enough() -> None:
    fleet = Driver("vm1")
    listed = status("vm1", event("vm1"), records=[record()])
    fleet.poll({"vm1": listed})
    assert fleet.count("approve_prepared") == 0
    fleet.wait(2)
    fleet.answer("status", {"vm1": listed})
    assert fleet.count("approve_prepared") == 1


def test_prepared_minion_whose_imds_gives_no_document_withholds_the_approval() -> None:
    fleet = listing("vm1", "vm2")
    fleet.prepare("vm1")
    fleet.poll({"vm1": status(None, records=[record()], available=False, reason="IMDS answered 503")})
    fleet.prepare("vm2")
    assert fleet.count("approve_prepared") == 0 and "IMDS answered 503" in fleet.reason
    fleet.poll({"vm1": status("vm1", BOTH, records=[record()])})
    assert fleet.count("approve_prepared") == 1
