# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The requests of operators."""

from __future__ import annotations

import pytest

from azure_events_engine.text_table import events_as_text, minions_as_text
from support.salt_simulation.driver import EVENT, Driver, done, event, listing, prepared, record, status


def held_back() -> Driver:
    """vm1 is prepared, vm2 is not."""
    fleet = listing("vm1", "vm2")
    fleet.prepare("vm1")
    fleet.prepare("vm2", outcome="no_steps")
    return fleet


def test_status_has_a_row_for_each_vm() -> None:
    rows = held_back().request("status", "")["rows"]
    assert [(row["vm"], row["minion"], row["prepared"], row["approved"]) for row in rows] == [
        ("vm1", "vm1", "prepared", None),
        ("vm2", "vm2", None, None),
    ]
    assert rows[0]["withheld"] == "vm2: minion vm2: no_steps" and rows[0]["waiting_for"] == "preparation"


def test_status_of_many_vms_that_are_not_ready_has_short_rows() -> None:
    rows = listing(*(f"vm{number}" for number in range(100))).request("status")["rows"]
    assert len(rows) == 100 and {len(row["withheld"]) for row in rows} == {500}


def test_not_before_that_azure_moves_is_that_of_the_status_and_prepares_nobody_again() -> None:
    fleet = listing("vm1")
    for moved in ("2026-11-22T11:00:00Z", "2026-11-22T13:00:00Z"):
        fleet.poll({"vm1": status("vm1", event("vm1", not_before=moved))})
        assert [row["not_before"] for row in fleet.request("status")["rows"]] == [moved]
    fleet.prepare("vm1")
    assert (fleet.count("prepare"), fleet.count("approve_prepared")) == (1, 1)


def test_status_as_text_is_a_table_for_each_event() -> None:
    reply = held_back().request("status", "")
    assert events_as_text(reply["rows"]).splitlines() == [
        EVENT + ": Reboot, not before 2026-11-22T12:00:00Z, waiting for preparation",
        "  withheld: vm2: minion vm2: no_steps",
        "  VM   MINION  PREPARED  WHY NOT",
        "  vm1  vm1     prepared  -",
        "  vm2  vm2     -         minion vm2: no_steps",
    ]
    assert events_as_text([], "disk is full") == "problem: disk is full"
    assert events_as_text([]) == "no events"


def test_fleet_as_text_is_a_table_of_minions() -> None:
    header, first, _second = minions_as_text(held_back().request("fleet", "")["rows"]).splitlines()
    assert header.split("  ")[0] == "MINION" and first.split()[:3] == ["vm1", "vm1", "id"]
    assert first.endswith(EVENT + "  -")


def test_prepared_vm_of_a_started_event_has_no_why_not() -> None:
    fleet = held_back()
    fleet.poll({"vm1": status("vm1", event("vm1", "vm2", status="Started"), records=[record()])})
    rows = {row["vm"]: row["why_not"] for row in fleet.request("status", "")["rows"]}
    assert rows["vm1"] is None and rows["vm2"]


def test_fleet_has_a_row_for_each_minion() -> None:
    rows = held_back().request("fleet", "")["rows"]
    assert [(row["minion"], row["vm"], row["name_from"], row["problem"], row["events"]) for row in rows] == [
        ("vm1", "vm1", "id", "", [EVENT]),
        ("vm2", "vm2", "id", "", [EVENT]),
    ]


def test_error_of_imds_is_shown_as_the_minion_reports_it() -> None:
    refused = "IMDS at http://169.254.169.254 answered 403 to GET /metadata/instance"
    fleet = Driver("vm1", "vm2")
    fleet.poll({"vm1": status("vm1", event("vm1", "vm2")), "vm2": status(None, available=False, reason=refused)})
    assert [row["problem"] for row in fleet.request("fleet")["rows"]] == ["", refused]
    assert [row["why_not"] for row in fleet.request("status")["rows"]][1] == f"minion vm2: {refused}"


def test_held_event_is_not_approved_until_it_is_released() -> None:
    fleet = Driver("vm1")
    fleet.request("hold")
    fleet.poll({"vm1": status("vm1", event("vm1"))})
    fleet.prepare("vm1")
    fleet.wait(20)
    assert fleet.count("approve_prepared") == 0
    assert fleet.request("status")["rows"][0]["withheld"] == "held by alice since 2026-11-22T10:00:00Z"
    fleet.request("release")
    fleet.poll({"vm1": status("vm1", event("vm1"), records=[record()])})
    assert fleet.count("approve_prepared") == 1


def test_hold_of_an_event_that_is_over_is_one_row_and_outlasts_keep() -> None:
    """It holds the next occurrence, and is on the disk."""
    fleet = prepared("vm1")
    fleet.see_over("vm1")
    fleet.answer("recover", {"vm1": done("recovered")})
    approvals = fleet.count("approve_prepared")
    (row,) = fleet.request("hold")["rows"]
    assert row["waiting_for"] == "the event" and row["withheld"].startswith("held by alice")
    fleet.wait(3 * 24 * 3600, 120)
    fleet.restart()
    assert fleet.request("status")["rows"][0]["withheld"].startswith("held by alice")
    fleet.poll({"vm1": status("vm1", event("vm1"))})
    fleet.prepare("vm1")
    fleet.wait(10)
    assert fleet.count("approve_prepared") == approvals


def test_hold_of_an_event_that_was_not_approved_remains_after_its_end() -> None:
    fleet = Driver("vm1")
    fleet.poll({"vm1": status("vm1", event("vm1"))})
    fleet.request("hold")
    fleet.prepare("vm1")
    fleet.see_over("vm1")
    fleet.answer("recover", {"vm1": done("recovered")})
    assert fleet.steps[-1] == "recovered"
    (row,) = fleet.request("status", "")["rows"]
    assert row["waiting_for"] == "the event" and row["withheld"].startswith("held by alice")
    fleet.request("release")
    assert fleet.request("status", "")["rows"][0]["waiting_for"] == "nothing; it is over"


def test_approved_event_cannot_be_held() -> None:
    fleet = prepared("vm1")
    fleet.answer("approve_prepared", {"vm1": done("approved")})
    assert "cannot be taken back" in fleet.request("hold")["error"]


def test_approval_that_is_withheld_is_refused_with_the_reason() -> None:
    fleet = held_back()
    assert fleet.request("approve")["error"] == f"event {EVENT} is withheld: vm2: minion vm2: no_steps"
    assert fleet.count("approve_prepared") == 0


def test_forced_approval_names_all_vms_and_is_recorded() -> None:
    fleet = held_back()
    fleet.request("hold")
    fleet.request("approve", force=True)
    (ask,) = fleet.pending("approve_prepared")
    assert ask.minions == ("vm1",) and ask.kwargs["resources"] == ["vm1", "vm2"]
    fleet.answer("approve_prepared", {"vm1": done("approved")})
    assert (
        fleet.request("status")["rows"][0]["approved"]
        == "approved through vm1, ordered by alice at 2026-11-22T10:00:00Z, forced"
    )
    fleet.see_over("vm1", "vm2")
    fleet.answer("recover", {"vm1": done("recovered"), "vm2": done("recovered")})
    assert fleet.request("status", "")["rows"][0]["waiting_for"] == "nothing; it is over"


def test_approval_cannot_be_forced_without_a_prepared_minion() -> None:
    fleet = listing("vm1")
    assert "no minion that it affects is prepared" in fleet.request("approve", force=True)["error"]


@pytest.mark.parametrize(
    ("second", "approvals"),
    [
        (event("vm1", "vm2"), 1),
        (event("vm1", "vm2", status="Started"), 0),
        (event("vm1", "vm2", readable=False), 0),
        (event("vm1", "vm2", kind="Redeploy"), 0),
        (event("vm1", "vm2", "vm3"), 0),
    ],
    ids=["unchanged", "started", "unreadable", "of another type", "with another VM"],
)
def test_order_of_a_person_does_not_cover_what_changes_before_the_approval(
    second: dict[str, object], approvals: int
) -> None:
    fleet = held_back()
    fleet.disk_is_full = True
    fleet.request("approve", force=True)
    fleet.poll({"vm2": status("vm2", second)})
    fleet.disk_is_full = False
    fleet.wait(6)
    assert fleet.count("approve_prepared") == approvals


def test_order_of_a_person_survives_the_engine() -> None:
    fleet = held_back()
    fleet.request("approve", force=True)
    fleet.restart()
    both = event("vm1", "vm2")
    fleet.poll({"vm1": status("vm1", both, records=[record()]), "vm2": status("vm2", both)})
    assert [ask.kwargs["forced"] for ask in fleet.pending("approve_prepared")] == [True, True]


@pytest.mark.parametrize("restarts", [False, True])
def test_order_of_a_person_covers_each_type_that_a_minion_listed(restarts: bool) -> None:
    """vm1 and vm2 answer in turns."""
    fleet = Driver("vm1", "vm2")
    answers = {
        "vm1": status("vm1", event("vm1", "vm2"), records=[record()]),
        "vm2": status("vm2", event("vm1", "vm2", kind="Redeploy")),
    }
    fleet.poll(answers)
    fleet.prepare("vm2", outcome="no_steps")
    fleet.request("approve", force=True)
    fleet.answer("approve_prepared", {"vm1": done("unavailable", "IMDS answered 429")})
    if restarts:
        fleet.restart()
    for minion in ("vm1", "vm2", "vm1"):
        fleet.poll({minion: answers[minion]})
    fleet.wait(6)
    assert [ask.kwargs["forced"] for ask in fleet.pending("approve_prepared")] == [True, True]


@pytest.mark.parametrize(("do", "listed", "asked"), [("prepare", True, "prepare"), ("recover", False, "recover")])
def test_failed_step_is_retried_at_once(do: str, listed: bool, asked: str) -> None:
    fleet = listing("vm1")
    fleet.prepare("vm1", outcome="failed" if listed else "prepared")
    if not listed:
        fleet.see_over("vm1")
        fleet.answer("recover", {"vm1": done("failed")})
    before = fleet.count(asked)
    fleet.request(do)
    assert fleet.count(asked) == before + 1


@pytest.mark.parametrize("do", ["prepare", "recover", "approve", "release", "status"])
def test_unknown_event_is_an_error(do: str) -> None:
    assert "is not known to the engine" in Driver("vm1").request(do)["error"]


@pytest.mark.parametrize(("do", "event_id"), [("dance", EVENT), ("hold", ""), ("hold", "x" * 201), ("hold", "a\nb")])
def test_invalid_request_is_an_error(do: str, event_id: str) -> None:
    assert "expected" in Driver("vm1").request(do, event_id)["error"]


def test_maintenance_that_is_over_stays_in_the_status_for_a_while() -> None:
    fleet = prepared("vm1")
    fleet.see_over("vm1")
    fleet.answer("recover", {"vm1": done("recovered")})
    assert fleet.request("status")["rows"][0]["waiting_for"] == "nothing; it is over"
    fleet.wait(25 * 3600, 60)
    assert fleet.request("status", "")["rows"] == []
