# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The time line in a real browser: live, and in a report, which needs no server."""

from __future__ import annotations

import pytest

from imds_simulator.__main__ import main
from imds_simulator.control.page.report import report
from imds_simulator.control.state import MAX_NEW, run_data
from imds_simulator.scenario.files import default_scenario
from imds_simulator.server.clock import ManualClock
from imds_simulator.server.engine import Engine
from support.simulator.raw_http import send_request

# the kinds of what a row of the time line shows, from left to right, with the position in pixels
STEPS = """
const nodes = [...document.querySelectorAll(`.row[data-vm="${arguments[0]}"] .track > *`)];
return nodes.map((node) => [node.className.split(" ").pop(), node.getBoundingClientRect().left, node.title])
  .filter(([kind]) => kind !== "label").sort((one, other) => one[1] - other[1]);
"""


def play(simulator):
    """Let vm1 and vm2 go through an event that appears at 1:00; a fault meets vm2."""
    for vm in ("vm1", "vm2"):
        send_request(simulator.endpoints[vm])
    simulator.advance(60)
    simulator.post("/events", {"name": "patch", "type": "Reboot", "resources": ["vm1", "vm2"], "started_for": "2m"})
    simulator.advance(30)
    send_request(simulator.endpoints["vm1"])
    simulator.advance(30)
    simulator.post("/notes", {"vm": "vm1", "what": "prepared", "event": "patch"})
    simulator.post("/faults", {"kind": "unavailable", "vm": "vm2"})
    for _twice in range(2):
        send_request(simulator.endpoints["vm2"])
    simulator.advance(60)
    simulator.delete("/faults")
    simulator.post("/events/patch/approve", {"as": "vm1"})
    simulator.advance(150)
    simulator.post("/notes", {"vm": "vm1", "what": "recovered", "event": "patch"})
    simulator.post("/events", {"name": "later", "type": "Freeze", "resources": ["db1"]})
    simulator.advance(30)


def shown(page, vm):
    return [(kind, title.partition(" ")[0]) for kind, _left, title in page.evaluate(STEPS, vm) if kind != "expected"]


def rows(page):
    return [row.get_attribute("data-vm") for row in page.find_all(".row[data-vm]")]


def made(simulator, folder):
    file = folder / "report.html"
    assert main(["report", "--control", simulator.control, "--output", str(file)]) == 0
    return file


@pytest.mark.parametrize("is_report", [False, True], ids=["live", "report"])
def test_time_line_shows_who_did_what_when(page, start, tmp_path, is_report):
    simulator = start(args=("--clock", "manual", "--speed", "2"))
    play(simulator)
    if is_report:
        file = made(simulator, tmp_path)
        simulator.stop()
        page.errors()
        page.driver.get(f"file://{file}")
    else:
        page.open(simulator.control)
    marks = [(kind, time) for kind, time in shown(page, "vm1") if kind in ("seen", "prepared", "approved", "recovered")]
    assert marks == [("seen", "1:30"), ("prepared", "2:00"), ("approved", "3:00"), ("recovered", "5:30")]
    kinds = [kind for kind, _time in shown(page, "vm2")]
    assert kinds.count("errors") == kinds.count("fault") == kinds.count("scheduled") == kinds.count("interrupted") == 1
    assert shown(page, "db1")[0][0] == "scheduled"
    # positions are proportional to time
    left = {kind: left for kind, left, _title in page.evaluate(STEPS, "vm1")}
    assert (left["approved"] - left["prepared"]) / (left["prepared"] - left["seen"]) == pytest.approx(2, abs=0.1)
    assert left["recovered"] > left["started"] > left["scheduled"]
    assert page.text(".row[data-vm='vm1'] .label").split() == ["patch", "Reboot"]
    assert page.find("#log").is_displayed()
    assert page.find("#schedule").is_displayed() is not is_report
    page.evaluate("document.querySelector('#ended').open = true")
    assert page.part("patch", ".approved").text == "by vm1 at 3:00"
    assert page.errors() == []


def test_filters_choose_vms_and_events_of_time_line_and_log(page, start):
    simulator = start()
    play(simulator)
    page.open(simulator.control)
    page.choose(page.find("#filter-event"), "later")
    page.wait(lambda: rows(page) == ["db1"], "the VM of the event")
    assert {each.text for each in page.find_all("#log .of")} == {"later"}
    page.choose(page.find("#filter-event"), "all")
    page.fill("#filter", "vm2")
    page.wait(lambda: rows(page) == ["vm2"], "the VM of the filter")
    page.choose(page.find("#log-kind"), "faults and errors")
    page.wait(lambda: len(page.find_all("#log li")) == 1, "the error alone")
    assert "GET scheduledevents 503 (fault unavailable), 2 times until 2:00" in page.text("#log")
    page.fill("#filter", "")
    page.wait_for("#log", "fault-injected")
    assert "note" not in page.text("#log")


@pytest.mark.all
def test_report_fits_a_phone_and_breaks_no_word(page, start, tmp_path):
    simulator = start()
    play(simulator)
    page.errors()
    page.show(390, 800)
    page.driver.get(f"file://{made(simulator, tmp_path)}")
    assert page.evaluate("return document.documentElement.scrollWidth <= innerWidth")
    assert page.broken_words() == []
    assert page.errors() == []


def test_each_interruption_of_an_event_has_a_bar_of_its_own(page, start):
    simulator = start()
    event = {"type": "Reboot", "resources": ["vm1"], "starts": "automatic_approval", "started_for": "5m"}
    second = {"after_start": "1m", "action": "impact", "impact_for": "20s"}
    simulator.post("/events", {**event, "impact_for": "10s", "changes": [second]})
    simulator.advance(240)
    page.open(simulator.control)
    bars = [title for kind, _left, title in page.evaluate(STEPS, "vm1") if kind == "interrupted"]
    assert [each.rpartition(", ")[2] for each in bars] == ["0:00 to 0:10", "1:00 to 1:20"]


def test_report_states_how_many_lines_and_requests_it_leaves_out(page, tmp_path):
    engine = Engine(default_scenario(), ManualClock(0), lambda _line: None)
    for number in range(MAX_NEW + 10):
        engine.log("note", vm="vm1", note="prepared")
        # each answer differs from the one before, and is a group of its own
        engine.activity_log.add_request(0.0, "vm1", "GET", "scheduledevents", "", 200 + number % 2, "", "")
    file = tmp_path / "report.html"
    file.write_text(report(run_data(engine, {"vm1": "http://127.0.0.1:8169"})), encoding="utf-8")
    page.errors()
    page.driver.get(f"file://{file}")
    assert page.text("#left-out") == "Left out: 10 older lines, 10 older requests."
    assert page.errors() == []


def test_deleted_vm_is_marked_and_approves_nothing(page, start):
    simulator = start()
    event = {"type": "Preempt", "resources": ["vm1"], "notice": "30s", "started_for": "10s"}
    simulator.post("/events", event)
    page.open(simulator.control)
    assert "deleted" not in page.text("#timeline")
    simulator.advance(60)
    page.wait_for('.row[data-vm="vm1"] .age', "deleted")
    assert "1 deleted" in page.text('.group[data-group="web"]')
    simulator.post("/events", {"name": "next", "type": "Reboot", "resources": ["vm2"]})
    page.wait_for("#live-events", "next")
    choices = [each.text for each in page.part("next", "select").find_elements("tag name", "option")]
    assert choices == ["vm2", "control-plane", "other-tenants", "arm"]
    assert page.errors() == []


def test_fault_ends_on_the_page_with_the_last_of_its_requests(page, start):
    simulator = start()
    simulator.post("/faults", {"kind": "unavailable", "vm": "vm1", "requests": 1})
    simulator.advance(60)
    send_request(simulator.endpoints["vm1"])
    simulator.advance(60)
    page.open(simulator.control)
    bands = [title for kind, _left, title in page.evaluate(STEPS, "vm1") if kind == "fault"]
    assert bands == ["fault unavailable, 0:00 to 1:00"]
    assert "had its last request" in page.text("#faults")
