# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""``wait``: the states of an event, its exit codes, and the end of the simulator."""

from __future__ import annotations

import socket
from types import SimpleNamespace
from urllib.parse import quote

import pytest

from imds_simulator.cli import wait_command

REBOOT = {"type": "Reboot", "resources": ["vm1"]}


@pytest.fixture
def sim(sim, monkeypatch):
    monkeypatch.setenv("IMDS_SIMULATOR_CONTROL", sim.control)
    return sim


@pytest.fixture
def event(sim):
    """Return the name of a Scheduled event, which no other test has."""
    return sim.post("/events", REBOOT)["name"]


def test_states_that_an_event_has_reached_end_at_once(sim, event, call):
    sim.post(f"/events/{event}/approve")
    approved = sim.get(f"/events/{event}")["approvals"]["control-plane"]
    assert call("wait", event, "--until", "approved") == (0, f"{event} had been approved at {approved}\n", "")
    sim.advance(1)
    started = sim.get(f"/events/{event}")["started_at"]
    assert call("wait", event) == (0, f"{event} had started at {started}\n", "")
    gone = sim.post(f"/events/{event}/complete")["gone_at"]
    for until, line in (("approved", f"been approved at {approved}"), ("started", f"started at {started}")):
        assert call("wait", event, "--until", until) == (0, f"{event} had {line}\n", "")
    assert call("wait", event, "--until", "gone") == (0, f"{event} had gone at {gone}\n", "")


def test_an_event_comes_and_goes_while_the_verb_waits(sim, call, monkeypatch):
    def pass_time(_seconds):
        sim.post("/events", {**REBOOT, "name": "reboot-of-later", "started_for": 5})
        sim.post("/events/reboot-of-later/approve")
        sim.advance(60)

    monkeypatch.setattr(
        wait_command, "time", SimpleNamespace(monotonic=iter((0.0, 0.5, 1.5)).__next__, sleep=pass_time)
    )
    assert call("wait", "reboot-of-later", "--until", "gone") == (0, "reboot-of-later gone after 1.5 s\n", "")


def test_the_time_limit_says_what_became_of_the_event(event, call):
    for name, limit, problem in (
        ("never", "100ms", "it has not come after 0.1s"),
        (event, "0", "it is Scheduled and not started after 0s"),
    ):
        assert call("wait", name, "--timeout", limit) == (3, "", f"imds_simulator: event {name}: {problem}\n")


@pytest.mark.parametrize(
    "action, until, problem",
    [
        ("cancel", "started", "it is cancelled and not started"),
        ("cancel", "approved", "it is cancelled and not approved"),
        ("complete", "started", "it is Gone and not started"),
        ("start", "approved", "it is Started and not approved"),
    ],
)
def test_a_state_that_can_no_longer_come_ends_at_once(sim, event, call, action, until, problem):
    if action == "start":
        sim.post(f"/events/{event}/change", {"status": "Started"})
    else:
        sim.post(f"/events/{event}/{action}")
    assert call("wait", event, "--until", until) == (1, "", f"imds_simulator: event {event}: {problem}\n")


@pytest.mark.parametrize("verb", ["wait", "approve"])
def test_an_empty_name_such_as_an_unset_variable_is_refused(verb, call):
    assert call(verb, "") == (2, "", "imds_simulator: EVENT: '' is not text of at least one character\n")


def test_a_name_with_control_characters_does_not_reach_the_terminal(sim, call):
    name, shown = "odd\x1b[2J", "odd\\x1b[2J"
    sim.post("/events", {**REBOOT, "name": name})
    problem = f"imds_simulator: event {shown}: it is Scheduled and not approved after 0s\n"
    assert call("wait", name, "--until", "approved", "--timeout", "0") == (3, "", problem)
    sim.post(f"/events/{quote(name)}/approve")
    assert call("wait", name, "--until", "approved").out.startswith(f"{shown} had been approved at ")


def test_the_begin_of_an_event_id_names_the_event_if_it_is_the_only_one(sim, call):
    for number, digits in ((1, "ABCD1111"), (2, "ABCD2222")):
        sim.post("/events", {**REBOOT, "name": f"same-{number}", "id": f"{digits}-0000-4000-8000-000000000000"})
    assert call("wait", "abcd1", "--timeout", "0").err.startswith("imds_simulator: event same-1: it is Scheduled")
    ambiguous = call("wait", "abcd", "--timeout", "0")
    assert ambiguous.code == 2 and "event: the EventIds of same-1, same-2 begin with abcd" in ambiguous.err
    assert call("wait", "abc", "--timeout", "0").code == 3


def test_the_end_of_the_simulator_ends_the_wait(start_process, call, monkeypatch):
    sim = start_process()
    waits = SimpleNamespace(monotonic=lambda: 0.0, sleep=lambda _seconds: sim.stop())
    monkeypatch.setattr(wait_command, "time", waits)
    problem = f"imds_simulator: {sim.control}: the simulator has ended\n"
    assert call("wait", "never", "--control", sim.control) == (1, "", problem)


def test_a_server_that_never_answers_ends_the_wait_with_its_time(call, monkeypatch):
    # without the bound of the verb the test would wait so long
    monkeypatch.setattr(wait_command, "TIMEOUT", 3600.0)
    with socket.create_server(("127.0.0.1", 0)) as server:
        control = f"http://127.0.0.1:{server.getsockname()[1]}"
        done = call("wait", "never", "--timeout", "1s", "--control", control)
    assert done.code == 1 and done.err.startswith(f"imds_simulator: no control API at {control}: timed out; ")
