# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Reports of values: untrusted names, many VMs and events, data that is no longer there."""

from __future__ import annotations

import pytest

from imds_simulator.report.page import report
from imds_simulator.report.run import NotARun, run_from
from imds_simulator.report.selection import MAX_EVENTS, MAX_FACTS, MAX_VMS
from imds_simulator.times import iso
from support.simulator.report_page import ReportPage

START = 1_700_000_000.0
ELEMENTS = {
    *("html", "head", "meta", "title", "style", "body", "main", "h1", "h2", "p", "ul", "li", "div"),
    *("table", "caption", "thead", "tbody", "tr", "th", "td"),
    *("svg", "desc", "defs", "pattern", "rect", "line", "path", "text"),
}
EVIL = "<script>alert(1)</script>\"'&amp;]]><!--\u202e\x1b[31m\x00"


def event(name, vms, appears, **more):
    data = {
        "name": name, "id": f"ID-{name}", "group": "web", "status": "Started", "type": "Reboot", "source": "Platform",
        "description": "", "resources": vms, "appears_at": iso(START + appears), "not_before": iso(START + 900),
        "started_at": iso(START + appears + 10), "gone_at": iso(START + appears + 30), "cancelled": False,
    }  # fmt: skip
    return {**data, **more}


def answers(events=(), vms=("vm1",), lines=(), requests=(), dropped=(0, 0), counts=(), **state):
    state = {
        "title": "values", "unix": START + 5000, "speed": 1.0, "vms": {vm: {"group": "web"} for vm in vms},
        "events": list(events), "faults": [], **state,
    }  # fmt: skip
    numbered = [{"number": number, **line} for number, line in enumerate(lines)]
    return (
        state,
        {"lines": numbered, "dropped": dropped[0]},
        {"requests": list(requests), "counts": list(counts), "dropped": dropped[1]},
    )


def line(what, after, **fields):
    return {"time": iso(START + after), "what": what, **fields}


def made(*args, **kwargs):
    return ReportPage(report(run_from(*answers(*args, **kwargs))))


def test_names_and_texts_are_escaped():
    page = made(
        [event(EVIL, [EVIL], 1, type=EVIL, source=EVIL)],
        [EVIL],
        [
            line("seen", 2, vm=EVIL, event=EVIL),
            line("note", 3, vm=EVIL, note=EVIL, event=EVIL),
            line("started", 11, event=EVIL, why=EVIL),
            line("approved", 4, by=EVIL, event=EVIL),
        ],
        [{"moment": START + 5, "vm": EVIL, "method": "GET", "route": EVIL, "status": 500, "fault": EVIL}],
        counts=[{"vm": EVIL, "status": 500, "count": 1}],
        title=EVIL,
        faults=[{"number": 1, "kind": EVIL, "vms": [EVIL], "from": iso(START + 4), "to": None}],
    )
    names = {name for name, _attributes in page.elements}
    assert names <= ELEMENTS
    assert not [attributes for _name, attributes in page.elements if any(key.startswith("on") for key in attributes)]
    assert page.svg is not None
    assert len(page.marks()) == 4
    assert page.text.count("<script>alert(1)</script>") > 5
    assert not {"\x00", "\x1b", "\u202e"} & set(page.source)
    assert "http" not in page.source.replace("http://www.w3.org/2000/svg", "").replace("http-equiv", "")


def test_report_of_many_vms_and_events_is_bounded_and_states_what_is_missing():
    vms = [f"vm{number}" for number in range(1000)]
    events = [
        event(f"event{number}", vms[number % 700 + 250 : number % 700 + 253], number * 7) for number in range(500)
    ]
    lines = [line("seen", number, vm=vm, event=f"event{number % 500}") for number, vm in enumerate(vms * 4)]
    lines += [line("approved", number * 7 + 5, by=f"vm{number}", event=f"event{number}") for number in range(500)]
    errors = [
        {"moment": START + number, "vm": vms[number % 1000], "method": "GET", "route": "x", "status": 429, "fault": ""}
        for number in range(20000)
    ]
    counts = [{"vm": vm, "status": 429, "count": 20} for vm in vms]
    page = made(events, vms, lines, errors, counts=counts, dropped=(12, 1))
    assert len(page.source) < 1_500_000
    assert len(page.lanes()) == MAX_VMS
    assert len(page.rows("Events")) == MAX_EVENTS
    assert len(page.rows("Steps")) <= MAX_FACTS
    # VMs with events, rather than the first ones
    assert {vm for each in page.rows("Events")[:10] for vm in each["VMs"].split(", ")} <= set(page.lanes())
    missing = " ".join(part for part in page.text.split("Left out: ")[1:])
    assert "300 later events of 500" in missing
    assert "950 VMs of 1,000" in missing
    assert "12 older lines" in missing
    assert "1 older request" in missing
    assert page.rows("Answers")[-1] == {"VM": "all VMs", "429": "20000"}


def test_events_that_overlap_have_rows_of_their_own():
    page = made([event("a", ["vm1"], 0), event("b", ["vm1"], 10), event("c", ["vm1"], 4000)], unix=START + 5000)
    rows = {each.title.partition(":")[0]: each.y for each in page.bars("started")}
    assert rows["a"] != rows["b"]
    assert rows["c"] == rows["a"]


def test_event_that_is_not_over_reaches_the_end_of_the_run():
    page = made([event("a", ["vm1"], 0, started_at=None, gone_at=None, not_before=iso(START + 50))], unix=START + 100)
    (scheduled,) = page.bars("scheduled")
    assert page.bars("started") == []
    assert page.rows("Events")[0]["end"] == "still in the document"
    deadline = next(path for path in page.svg.iter() if path.get("class") == "deadline")
    assert float(deadline.get("d").split()[0][1:]) + 1 == pytest.approx((scheduled.x + scheduled.end) / 2, abs=0.1)


def test_approval_by_the_control_plane_is_a_mark_of_each_vm():
    page = made([event("a", ["vm1", "vm2"], 0)], ["vm1", "vm2", "vm3"], [line("approved", 3, by="arm", event="a")])
    assert [len(page.marks(vm)) for vm in ("vm1", "vm2", "vm3")] == [1, 1, 0]


@pytest.mark.parametrize(
    "damage",
    [
        {"unix": "soon"},
        {"vms": []},
        {"events": [{}]},
        {"faults": [{"number": 1}]},
        {"speed": None},
        {"speed": 0},
        {"unix": 1e99},
    ],
)
def test_answers_of_another_program_are_refused(damage):
    state, log, requests = answers()
    with pytest.raises(NotARun):
        run_from({**state, **damage}, log, requests)
    with pytest.raises(NotARun):
        run_from(["not", "a", "state"], log, requests)


def test_event_that_has_not_appeared_is_not_shown():
    planned = event("later", ["vm1"], 9000, status="Planned", started_at=None, gone_at=None)
    assert made([planned, event("waits", ["vm1"], 0, status="Planned", appears_at=None)]).svg is None
