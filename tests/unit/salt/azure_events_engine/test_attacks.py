# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Possible and impossible effects of a compromised minion on others: a is hostile, b and c are not."""

from __future__ import annotations

from typing import Any

import pytest

from azure_events_engine.text_table import events_as_text
from support.salt_simulation.driver import EVENT, Driver, done, event, listing, prepared, record, status

HIT = event("b", "c")


def test_minion_that_claims_the_vm_of_another_changes_nothing_for_it() -> None:
    """Without c's own answer the event is not approved."""
    fleet = Driver("a", "b", "c")
    fleet.poll({"a": status("c", HIT, records=[record()]), "b": status("b", HIT)})
    fleet.prepare("b")
    fleet.wait(60)
    assert fleet.count("approve_prepared") == 0
    rows = {row["minion"]: row for row in fleet.request("fleet", "")["rows"]}
    assert "which is the VM of minion c" in rows["a"]["problem"]
    fleet.poll({"b": status("b", HIT, records=[record()]), "c": status("c", HIT)})
    fleet.prepare("c")
    assert [ask.minions for ask in fleet.pending("approve_prepared")] == [("b",)]


def test_second_claimant_of_an_observed_name_holds_the_approval() -> None:
    fleet = Driver("id-1", "id-2")
    fleet.poll({"id-1": status("b", event("b"))})
    fleet.poll({"id-2": status("b")})
    fleet.prepare("id-1")
    fleet.wait(10)
    assert fleet.count("approve_prepared") == 0
    assert "minions id-1, id-2 report that this is their VM" in fleet.request("status")["rows"][0]["why_not"]
    fleet.poll({"id-2": status("z")})
    fleet.wait(6)
    assert fleet.count("approve_prepared") == 1


@pytest.mark.parametrize("settings", [{"mapping": {"id-1": "b"}}, {}])
def test_mapping_decides_between_claimants(settings: dict[str, Any]) -> None:
    fleet = Driver("id-1", "id-2", **settings)
    fleet.poll({"id-2": status("b", event("b"))})
    fleet.poll({"id-1": status("b", event("b"))})
    fleet.prepare("id-1", "id-2")
    fleet.wait(10)
    assert (
        fleet.count("approve_prepared", "id-1") == (1 if settings else 0)
        and fleet.count("approve_prepared", "id-2") == 0
    )


def test_false_started_does_not_prevent_others_from_preparing() -> None:
    fleet = Driver("a", "b", "c")
    fleet.poll({"a": status("b", event("b", "c", status="Started"))})
    fleet.poll({"b": status("b", HIT), "c": status("c", HIT)})
    fleet.prepare("b", "c")
    assert fleet.count("prepare", "b") == 1 and fleet.count("approve_prepared") == 1


def test_bystander_may_withhold_the_approval_but_not_prolong_or_end_the_event() -> None:
    """The engine cannot distinguish it from a VM that b's backend of IMDS does not name yet."""
    fleet = Driver("a", "b")
    forged = event("a", "b")
    fleet.poll({"a": status("a", forged), "b": status("b", event("b"))})
    fleet.prepare("b")
    fleet.wait(10)
    assert fleet.count("approve_prepared") == 0
    fleet.poll({"a": status("a", forged)})
    fleet.see_over("b")
    assert fleet.count("recover", "b") == 1


def test_forged_list_without_another_vm_causes_no_approval() -> None:
    fleet = Driver("b", "c")
    fleet.poll({"b": status("b", event("b"), records=[record()]), "c": status("c", HIT)})
    fleet.wait(60)
    assert fleet.count("approve_prepared") == 0


def test_bystander_that_lists_no_event_does_not_end_it() -> None:
    fleet = Driver("a", "b")
    fleet.poll({"b": status("b", event("b"))})
    fleet.prepare("b")
    fleet.poll({"a": status("a")})
    fleet.poll({"a": status("a")})
    assert fleet.count("recover", "b") == 0 and "over" not in fleet.steps


@pytest.mark.parametrize(
    "odd",
    [
        [],
        None,
        "text",
        {},
        {"version": 2},
        {"version": True},
        status("a", {"event_id": None}),
        status("a", event("a", event_id="x\x7f")),
        status("a", event("a", event_id="x" * 201)),
        status("a", event(*["vm"] * 5001)),
        status("a", dict(event("a"), resources=[7])),
        status("a", dict(event("a"), status=7)),
        dict(status("a"), resource_name=7),
        status("a", records=[{"event_id": 7}]),
    ],
    ids=lambda odd: repr(odd)[:40],
)
def test_invalid_answer_affects_its_minion_only(odd: Any) -> None:
    fleet = Driver("a", "b")
    fleet.hint("a", "b")
    fleet.answer("status", {"a": odd, "b": status("b", event("b"))})
    fleet.prepare("b")
    assert fleet.count("approve_prepared", "b") == 1
    rows = {row["minion"]: row for row in fleet.request("fleet", "")["rows"]}
    assert rows["a"]["problem"] and not rows["b"]["problem"]


def test_name_of_a_vm_forges_no_line_of_the_table() -> None:
    fleet = Driver("a")
    fleet.poll({"a": status("a", event("a", "x\nA: Freeze, not before -, waiting for nothing\x1b[2J"))})
    text = events_as_text(fleet.request("status", "")["rows"])
    assert text.count("\n") == 4 and "\x1b" not in text


@pytest.mark.parametrize(
    "odd", [done("nonsense"), done("prepared", event_id="other"), None, dict(done("prepared"), reason=7)]
)
def test_invalid_answer_to_prepare_withholds_the_approval(odd: Any) -> None:
    fleet = listing("b")
    fleet.answer("prepare", {"b": odd})
    assert fleet.count("approve_prepared") == 0 and "minion b" in fleet.request("status")["rows"][0]["why_not"]


def test_flood_of_hints_causes_a_bounded_number_of_polls() -> None:
    """1,000 hints in ten seconds, and a genuine event of another minion among them."""
    fleet = Driver("a", "b")
    fleet.poll({"a": status("a"), "b": status("b")})
    before = fleet.count("status", "a")
    for number in range(10):
        for _hint in range(100):
            fleet.hint_only("a")
        fleet.wait(1.0)
        fleet.answer("status", {"a": status("a")})
        if number == 5:
            fleet.poll({"b": status("b", event("b", kind="Preempt"))})
            assert fleet.count("prepare", "b") == 1
    assert fleet.count("status", "a") - before <= 12


def test_forged_events_of_one_minion_are_bounded() -> None:
    fleet = Driver("a", "b")
    for number in range(10):
        events = [event("a", "b", event_id=f"forged-{number}-{one}") for one in range(300)]
        fleet.poll({"a": status("a", *events)})
    assert len(fleet.state.maintenances) <= 400
    fleet.wait(120)
    assert fleet.count("prepare", "a") <= 70 and fleet.count("status", "b") <= 12
    fleet.poll({"b": status("b", event("b", kind="Preempt", event_id="real"))})
    assert [ask.minions for ask in fleet.pending("prepare") if ask.kwargs["event_id"] == "real"] == [("b",)]


def test_forged_ends_do_not_remove_the_hold_of_an_operator() -> None:
    fleet = Driver("a", "b")
    fleet.request("hold", "real")
    names = ["real", *(f"forged-{number}" for number in range(1200))]
    for first in range(0, len(names), 200):
        events = [event("a", event_id=name) for name in names[first : first + 200]]
        for answer in (status("a", *events), status("a"), status("a")):
            fleet.poll({"a": answer})
            fleet.wait(3)
    assert len(fleet.state.over) == 1000
    fleet.poll({"b": status("b", event("b", event_id="real"))})
    fleet.prepare("b", event_id="real")
    fleet.wait(10)
    assert fleet.count("approve_prepared") == 0


def test_forged_records_of_one_minion_are_bounded() -> None:
    fleet = Driver("a", "b")
    for number in range(10):
        records = [record(f"forged-{number}-{one}") for one in range(1000)]
        fleet.poll({"a": status("a", records=records)})
    assert len(fleet.state.maintenances) <= 400


@pytest.mark.parametrize("function", ["prepare", "approve_prepared"])
def test_jobs_of_one_minion_are_at_most_60_and_then_one_in_two_seconds(function: str) -> None:
    """It lists 200 evictions, and for approvals it claims to be prepared for all of them."""
    fleet = Driver("a")
    began = fleet.now
    names = [f"forged-{number}" for number in range(200)]
    events = [event("a", event_id=name, kind="Preempt") for name in names]
    records = [record(name) for name in names] if function == "approve_prepared" else []
    fleet.poll({"a": status("a", *events, records=records)})
    assert 1 < len(fleet.asked) <= 60 + (fleet.now - began) / 2
    answered = 0
    for _time in range(120):
        jobs, answered = fleet.pending(function)[answered:], fleet.count(function)
        for job in jobs:
            fleet.give_return(job.job, "a", done("failed", event_id=job.kwargs["event_id"]))
        fleet.wait(1)
    assert len(fleet.asked) <= 60 + (fleet.now - began) / 2


def test_polls_leave_an_approval_to_a_minion_that_keeps_sending_hints() -> None:
    fleet = Driver("a")
    events = [event("a", event_id=f"event-{number}", kind="Preempt") for number in range(60)]
    fleet.poll({"a": status("a", *events)})
    job = fleet.pending("prepare")[0]
    name = job.kwargs["event_id"]
    only = status("a", event("a", event_id=name), records=[record(name)])
    fleet.give_return(job.job, "a", done("prepared", event_id=name))
    for _time in range(120):
        fleet.hint_only("a")
        fleet.wait(0.5)
        fleet.answer("status", {"a": only})
    assert fleet.count("approve_prepared")


def test_unrequested_answer_is_ignored() -> None:
    fleet = Driver("a", "b")
    fleet.poll({"b": status("b", event("b"))})
    (ask,) = fleet.pending("prepare")
    fleet.give_return(ask.job, "a", done("prepared"))
    fleet.give_return(999, "b", done("prepared"))
    assert fleet.count("approve_prepared") == 0


def test_minion_with_a_false_approval_is_replaced() -> None:
    fleet = prepared("b", "c")
    fleet.answer("approve_prepared", {"b": done("approved")})
    for _number in range(10):
        fleet.wait(15)
        fleet.answer("status", {"b": status("b", HIT, records=[record()]), "c": status("c", HIT, records=[record()])})
        if fleet.count("approve_prepared", "c"):
            fleet.answer("approve_prepared", {"c": done("approved")})
    assert [ask.minions for ask in fleet.pending("approve_prepared")] == [("b",), ("c",)]


def test_invalid_answer_keeps_the_preparations_of_the_minion() -> None:
    fleet = prepared("b")
    fleet.hint("b")
    fleet.answer("status", {"b": []})
    assert fleet.state.maintenances[EVENT.casefold()].members["b"].record == "prepared"


def test_too_long_name_of_a_vm_holds_the_approval_only() -> None:
    """The IMDS of a minion is compromised, the minion is not."""
    fleet = Driver("vm1")
    fleet.poll({"vm1": status("vm1", event("vm1", "x" * 1100))})
    fleet.prepare("vm1")
    assert fleet.count("approve_prepared") == 0 and fleet.reason.endswith("...: no minion has this VM")


@pytest.mark.parametrize("odd", ["E" * 1100, "E\x7f", "E\ufffe"], ids=["long", "DEL", "U+FFFE"])
def test_event_with_an_invalid_id_is_ignored(odd: str) -> None:
    fleet = Driver("vm1")
    fleet.poll({"vm1": status("vm1", event("vm1", event_id=odd), event("vm1"), records=[record(event_id=odd)])})
    assert [ask.kwargs["event_id"] for ask in fleet.pending("prepare")] == [EVENT]
    assert (
        fleet.request("fleet")["rows"][0]["problem"]
        == "events with IDs that are too long or not printable are left out: 2"
    )
    fleet.prepare("vm1")
    assert fleet.count("approve_prepared") == 1
