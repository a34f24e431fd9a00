# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The report of a scripted run: its picture and its tables have what the log has."""

from __future__ import annotations

from datetime import datetime

import pytest

from imds_simulator.__main__ import main
from support.simulator.raw_http import send_request
from support.simulator.report_page import ReportPage

SCENARIO = {
    "title": "two VMs",
    "groups": {"web": {"kind": "availability_set", "vms": {"vm1": {}, "vm2": {}}}, "db": {"vms": {"db1": {}}}},
}
PATCH = {"name": "patch", "type": "Freeze", "resources": ["vm1", "vm2"], "notice": "15m", "started_for": "30s"}


def seconds(text):
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def made(sim, folder, *arguments):
    file = folder / "report.html"
    assert main(["report", "--control", sim.control, "--output", str(file), *arguments]) == 0
    return ReportPage.of(file)


def note(sim, vm, what, **more):
    return sim.post("/notes", {"vm": vm, "what": what, **more})


def play(sim):
    """Let both VMs go through an event; the log has each step at its own second."""
    for vm in ("vm1", "vm2"):
        send_request(sim.endpoints[vm])
    sim.advance(5)
    sim.post("/events", {**PATCH, "duration": 6, "id": "5F0A3C52-7E1B-4D55-9C0E-2B8E4C1D9A10"})
    sim.advance(2)
    send_request(sim.endpoints["vm1"])
    sim.advance(2)
    send_request(sim.endpoints["vm2"])
    send_request(sim.endpoints["vm1"])
    sim.advance(4)
    note(sim, "vm1", "prepared", event="patch")
    sim.post("/faults", {"kind": "unavailable", "vm": "vm2", "for": "1h"})
    send_request(sim.endpoints["vm2"])
    send_request(sim.endpoints["vm2"])
    sim.advance(5)
    sim.delete("/faults")
    note(sim, "vm2", "prepared")
    sim.advance(3)
    sim.post("/events/patch/approve", {"as": "vm1"})
    sim.advance(1)
    sim.advance(40)
    note(sim, "vm1", "recovered")
    note(sim, "vm1", "back in rotation")
    sim.advance(2)
    note(sim, "vm2", "recovered", event="patch")


def test_report_shows_steps_of_each_vm_in_proportion_to_time(start_simulator, tmp_path, capsys):
    sim = start_simulator(SCENARIO, args=["--clock", "manual"])
    play(sim)
    page = made(sim, tmp_path)
    assert capsys.readouterr().out == f"{tmp_path / 'report.html'}\n"

    assert [mark.kind for mark in page.marks("vm1")] == ["seen", "prepared", "approved", "recovered", "note"]
    assert [mark.kind for mark in page.marks("vm2")] == ["seen", "errors", "prepared", "recovered"]
    assert page.marks("db1") == []

    lines = sim.get("/log")["lines"]
    zero = next(seconds(line["time"]) for line in lines if line["what"] == "scheduled")
    bars = {kind: page.bars(kind) for kind in ("scheduled", "started", "interrupted", "fault")}
    assert {kind: len(found) for kind, found in bars.items()} == {
        "scheduled": 2, "started": 2, "interrupted": 2, "fault": 1,
    }  # fmt: skip
    first, pixels = bars["scheduled"][0].x, (bars["started"][0].end - bars["scheduled"][0].x) / 47
    at = {
        (line["what"], line.get("vm") or line.get("by") or "", line.get("note", "")): seconds(line["time"]) - zero
        for line in lines
    }

    def x(what, vm="", text=""):
        return pytest.approx(first + pixels * at[what, vm, text], abs=0.1)

    # each at its own second, as the script does it
    assert (at["seen", "vm1", ""], at["seen", "vm2", ""], at["approved", "vm1", ""]) == (2, 4, 16)
    vm1, vm2 = page.marks("vm1"), page.marks("vm2")
    assert [mark.x for mark in vm1] == [
        x("seen", "vm1"),
        x("note", "vm1", "prepared"),
        x("approved", "vm1"),
        x("note", "vm1", "recovered"),
        x("note", "vm1", "back in rotation"),
    ]
    assert [mark.x for mark in vm2][::2] == [x("seen", "vm2"), x("note", "vm2", "prepared")]
    assert vm1[3].y != vm1[4].y
    assert bars["scheduled"][0].end == bars["started"][0].x == x("started")
    assert (bars["interrupted"][1].x, bars["interrupted"][1].end) == (x("impact-start"), x("impact-end"))
    # an injected fault ends when it is cleared, not an hour later
    assert (bars["fault"][0].x, bars["fault"][0].end) == (x("fault-injected"), x("faults-cleared"))
    assert page.lanes()["vm2"][0] <= bars["fault"][0].y < page.lanes()["vm2"][1]


def test_report_tables_have_the_facts_of_the_picture(start_simulator, tmp_path):
    sim = start_simulator(SCENARIO, args=["--clock", "manual", "--speed", "2"])
    play(sim)
    page = made(sim, tmp_path)
    steps = page.rows("Steps")
    assert [(row["VM"], row["step"], row["simulated"]) for row in steps if row["VM"]] == [
        ("vm1", "first received the event", "+2.00 s"),
        ("vm2", "first received the event", "+4.00 s"),
        ("vm1", "prepared", "+8.00 s"),
        ("vm2", "2 answers with status 503 (fault unavailable)", "+8.00 s"),
        ("vm2", "prepared", "+13.00 s"),
        ("vm1", "approved by vm1", "+16.00 s"),
        ("vm1", "recovered", "+57.00 s"),
        ("vm1", "back in rotation", "+57.00 s"),
        ("vm2", "recovered", "+59.00 s"),
    ]
    # half as many seconds of the clock
    assert [row["since the first event"] for row in steps][-1] == "+29.50 s"
    assert {mark.title.partition(": ")[2].partition(",")[0] for mark in page.marks()} <= {row["step"] for row in steps}
    (event,) = page.rows("Events")
    assert (event["event"], event["VMs"], event["type"]) == ("patch", "vm1, vm2", "Freeze (Platform)")
    assert event["approved"] == "by vm1, +8.00 s (+16.00 s simulated)"
    assert event["started"].endswith("1 interruption")
    (fault,) = page.rows("Faults")
    assert (fault["kind"], fault["VMs"], fault["for"]) == ("unavailable", "vm2", "2.50 s")
    assert {row["VM"]: row["503"] for row in page.rows("Answers")} == {"vm1": "0", "vm2": "2", "all VMs": "2"}
    assert "One second of this clock is 2 simulated seconds." in page.text
    assert "Left out" not in page.text


def test_report_of_a_run_without_events_states_it(start_simulator, tmp_path):
    page = made(start_simulator(SCENARIO, args=["--clock", "manual"]), tmp_path)
    assert "Nothing happened" in page.text
    assert page.svg is None


def test_report_verb_without_a_simulator_fails_and_keeps_the_file(tmp_path, capsys, unused_control):
    file = tmp_path / "report.html"
    file.write_text("an earlier one")
    assert main(["report", "--control", unused_control, "--output", str(file)]) == 1
    assert "check --control" in capsys.readouterr().err
    assert file.read_text() == "an earlier one"


@pytest.fixture
def unused_control():
    from support import simulator_process

    with simulator_process.reserved_port() as port:
        yield f"127.0.0.1:{port}"
