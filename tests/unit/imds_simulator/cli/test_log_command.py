# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""``log``: its columns, its order, lines as they come, and its ends."""

from __future__ import annotations

import re
import signal

import pytest

from imds_simulator.control.state import MAX_NEW
from support import simulator_process
from support.simulator.raw_http import approve, send_request
from support.simulator.simulations import PAIR
from support.wait import wait_until

TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z "


@pytest.fixture
def sim(start_process):
    return start_process({"groups": PAIR}, args=["--clock", "manual", "--knob", "rate_limit=off"])


@pytest.fixture
def follow(sim):
    """Return a running ``log --follow``."""
    process = simulator_process.spawn("log", "--follow", "--control", sim.control)
    yield process
    process.kill()
    process.communicate()


def without_time(line):
    assert re.match(TIME, line), line
    return re.sub(TIME, "", line.rstrip("\n"))


@pytest.fixture
def log(sim, call):
    """Return a function that returns the printed lines without their times; its arguments are of the verb."""

    def run(*words):
        done = call("log", "--control", sim.control, *words)
        assert done.code == 0
        return [without_time(line) for line in done.out.splitlines()]

    return run


def run_an_event(sim):
    """Let vm2 see and approve an event of both VMs, which starts, and let a fault cut an answer to vm1."""
    sim.post("/events", {"type": "Reboot", "resources": ["vm1", "vm2"], "name": "patch", "notice": "15m"})
    sim.advance(1)
    send_request(sim.endpoints["vm2"])
    sim.advance(1)
    approve(sim.endpoints["vm2"], sim.get("/events/patch")["id"])
    approve(sim.endpoints["vm2"], "nonsense")
    sim.advance(1)
    sim.post("/faults", {"kind": "gone", "vm": "vm1"})
    for _each in range(3):
        send_request(sim.endpoints["vm1"])


def test_a_line_has_time_vm_what_and_detail(sim, log):
    run_an_event(sim)
    sim.post("/notes", {"vm": "vm1", "what": "is prepared", "event": "patch"})
    found = log()
    assert re.fullmatch(r"vm1,vm2 scheduled patch Reboot " + TIME.strip(), found[0])
    for line in (
        "vm2 GET scheduledevents 200",
        "vm2 approved patch Reboot",
        "vm2 approval 200 patch",
        "vm1,vm2 started patch Reboot approved",
        "- fault-injected fault=1 gone",
        "vm1 GET scheduledevents 410 gone (3 times)",
        "vm1 note patch is prepared",
    ):
        assert line in found
    assert [line for line in found if line.startswith("vm2 approval 400 ")]
    assert "vm2 enabled incarnation=2" in found
    # a request stands between what came before and after it
    assert found.index("vm2 GET scheduledevents 200") < found.index("vm2 approved patch Reboot")
    started, cut = found.index("vm1,vm2 started patch Reboot approved"), "vm1 GET scheduledevents 410 gone (3 times)"
    assert started < found.index(cut)


def test_first_column_is_a_vm_and_the_detail_says_who_acted(sim, log):
    event = sim.post("/events", {"type": "Reboot", "resources": ["vm1", "vm2"], "name": "patch"})
    sim.post("/events/patch/approve", {"as": "arm"})
    acknowledge = event["acknowledge_path"]
    for method in ("GET", "POST"):
        send_request(sim.control, acknowledge, method, {"Authorization": "Bearer any"})
    sim.post("/events/patch/approve", {"as": "vm2"})
    sim.post("/disable", {"group": "web"})
    sim.post("/faults", {"kind": "refuse", "vm": "vm1"})
    assert log()[1:] == [
        "vm1,vm2 approved patch Reboot by=arm",
        "vm1 approval by=arm 200 unchanged=patch",
        "vm2 approved patch Reboot",
        "- disabled group=web",
        "- fault-injected fault=1 refuse",
        f"- refusing {sim.endpoints['vm1']}",
        # lines of one moment come before requests
        "vm1 GET arm 405",
        "vm1 POST arm 200",
    ]


def test_approval_without_an_effect_names_its_event(sim, log):
    id_ = sim.post("/events", {"type": "Reboot", "resources": ["vm1"], "name": "patch"})["id"]
    for seconds in (0, 1, 0):
        approve(sim.endpoints["vm1"], id_)
        sim.advance(seconds)
    assert log("--what", "approval") == ["vm1 approval 200 patch", *2 * ["vm1 approval 200 unchanged=patch"]]


def test_what_prints_lines_of_one_kind_and_an_end_by_a_deletion_has_the_reason(sim, log):
    send_request(sim.endpoints["vm1"])
    sim.post("/events", {"type": "Preempt", "resources": ["vm2"], "starts": "automatic_approval"})
    sim.post("/events", {"type": "Reboot", "resources": ["vm2"], "name": "patch"})
    sim.advance("2m")
    assert log("--what", "cancelled") == ["vm2 cancelled patch Reboot Azure deleted vm2"]


def test_a_long_log_states_how_many_older_entries_it_leaves_out(start_process, call):
    steps = [{"group": "web", "to": number} for number in range(MAX_NEW + 3)]
    sim = start_process({"groups": {"web": {"vms": ["vm1"]}}, "incarnations": steps})
    done = call("log", "--control", sim.control)
    lines = done.out.splitlines()
    assert done.code == 0 and len(lines) == MAX_NEW and lines[0].endswith("- incarnation group=web incarnation=3")
    assert done.err.endswith(": older lines that are left out: 3; older requests: 0\n")


def test_a_text_of_a_scenario_steers_no_terminal(sim, log):
    sim.post("/events", {"type": "Reboot", "resources": ["vm1"], "name": "a\x1b[31m\nb"})
    assert [line.split()[:3] for line in log()] == [["vm1", "scheduled", r"a\x1b[31m\nb"]]


def test_follow_prints_what_comes_until_it_is_interrupted(sim, follow):
    run_an_event(sim)
    lines = [follow.stdout.readline()]
    wait_until(lambda: lines.append(follow.stdout.readline()) or "(3 times)" in lines[-1] or " 410 " in lines[-1])
    assert without_time(lines[0]).startswith("vm1,vm2 scheduled patch Reboot ")
    sim.post("/notes", {"vm": "vm2", "what": "recovered"})
    wait_until(lambda: "vm2 note recovered" in follow.stdout.readline())
    follow.send_signal(signal.SIGINT)
    _out, err = follow.communicate(timeout=60)
    assert (follow.returncode, err) == (0, "")


def test_follow_ends_with_the_simulator(sim, follow):
    sim.post("/notes", {"vm": "vm2", "what": "recovered"})
    assert without_time(follow.stdout.readline()) == "vm2 note recovered"
    sim.stop()
    out, err = follow.communicate(timeout=60)
    assert (follow.returncode, out, err) == (1, "", f"imds_simulator: {sim.control}: the simulator has ended\n")


def test_follow_prints_the_whole_log_of_a_simulator_that_was_started_again(sim, follow, start_process):
    sim.post("/notes", {"vm": "vm1", "what": "recovered"})
    assert without_time(follow.stdout.readline()) == "vm1 note recovered"
    # between two questions
    follow.send_signal(signal.SIGSTOP)
    sim.stop()
    again = start_process({"groups": PAIR}, control=sim.control.partition("//")[2])
    for vm in ("vm2", "vm1"):
        again.post("/notes", {"vm": vm, "what": "recovered"})
    follow.send_signal(signal.SIGCONT)
    assert without_time(follow.stdout.readline()) == "vm2 note recovered"
    again.stop()
    _out, err = follow.communicate(timeout=60)
    assert "imds_simulator: the simulator was started again; its log begins again\n" in err
