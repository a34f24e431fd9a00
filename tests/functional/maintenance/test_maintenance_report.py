# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The report of a maintenance run: a table, data, and reasons for missing approvals."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.maintenance.fleet import FREEZE, LATE, Fleet, failed
from support.maintenance.reports import reporting, rows
from support.simulator_process import Simulator

pytestmark = pytest.mark.all

STEPS = ("prepared", "approved", "started", "over", "recovered")


def test_report_has_a_row_for_each_host_and_event(azure: Simulator, tmp_path: Path) -> None:
    azure.post("/events", LATE)
    ran = reporting(azure, tmp_path).maintain()
    assert ran.returncode == 0, ran.stdout
    report = rows(ran)
    assert set(report) == {"vm1", "vm2"}
    for name, row in report.items():
        assert (
            row["vm"] == name
            and row["event_type"] == "Freeze"
            and row["resources"] == ["vm1", "vm2"]
            and row["not_before"]
        )
        assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", row[step]) for step in STEPS)
        assert row["why_not"] == ""
    head = "host event not before prepared approved started over recovered outcome why not"
    assert re.search(head.replace(" ", " +"), ran.stdout)
    assert re.search(rf"vm1 +Freeze {report['vm1']['event_id']}( +\d\d:\d\d:\d\d){{6}} +completed", ran.stdout)


def test_report_says_why_an_event_was_not_approved(azure: Simulator, tmp_path: Path) -> None:
    azure.post("/events", FREEZE)
    ran = reporting(azure, tmp_path).maintain("test {{ inventory_hostname }} != vm2")
    report = rows(ran)
    assert failed(ran) == {"vm2"}
    assert report["vm1"]["prepared"] and report["vm2"]["prepared"] is None
    assert [report[name]["approved"] for name in ("vm1", "vm2")] == [None, None]
    assert report["vm1"]["why_not"].startswith("not approved: vm2: the preparation failed: ")
    assert "the preparation failed" in report["vm2"]["why_not"] and report["vm2"]["recovered"]
    assert re.search(r"Freeze \S+ of vm1, vm2 is not approved: vm2: the preparation failed", ran.stdout)


def test_report_is_shown_although_all_hosts_fail(azure: Simulator, tmp_path: Path) -> None:
    azure.post("/events", FREEZE)
    ran = reporting(azure, tmp_path).maintain(recover="false")
    assert failed(ran) == {"vm1", "vm2"}
    for row in rows(ran).values():
        assert (
            row["approved"]
            and row["over"]
            and row["recovered"] is None
            and row["why_not"].startswith("the recovery failed: ")
        )


def test_report_has_hosts_whose_events_could_not_be_read(azure: Simulator, tmp_path: Path) -> None:
    fleet = reporting(
        azure,
        tmp_path,
        elsewhere={"maintenance_endpoint": "http://127.0.0.1:9", "maintenance_notes": str(tmp_path / "elsewhere")},
    )
    report = rows(fleet.maintain())
    assert set(report) == {"elsewhere"} and report["elsewhere"]["event_id"] == ""
    assert "its scheduled events could not be read" in report["elsewhere"]["why_not"]


def test_any_errors_fatal_of_the_user_stops_no_other_host(azure: Simulator, tmp_path: Path) -> None:
    azure.post("/events", FREEZE)
    fleet = Fleet(azure, tmp_path)
    fleet.hosts.environment["ANSIBLE_ANY_ERRORS_FATAL"] = "1"
    ran = fleet.maintain("test {{ inventory_hostname }} != vm2", recover="test {{ inventory_hostname }} != vm1")
    assert failed(ran) == {"vm1", "vm2"}
    assert fleet.did("prepare") == {"vm1"} and fleet.did("recover") == {"vm2"}
