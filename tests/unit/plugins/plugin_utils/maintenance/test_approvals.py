# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: GPL-3.0-or-later
"""Any course of the rounds in which a run approves: hosts are lost, restart and return, and answers are lost."""

from __future__ import annotations

import random

import pytest
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.event_types import (
    EVENT_TYPES,
)
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.identity import vm_key
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.urgency import (
    counts_for,
)
from ansible_collections.azure_imds.scheduled_events.plugins.plugin_utils._maintenance.approvals import (
    MOST_ATTEMPTS,
    after_approvals,
    decide_approvals,
)
from ansible_collections.azure_imds.scheduled_events.plugins.plugin_utils._maintenance.hosts import hosts_of

AT = "2026-11-21T12:00:00.000000Z"
VMS = ("vm1", "vm2", "vm3", "vm4")
PATIENCE, ROUND = 120.0, 10.0
# failed approvals, a preparation after a restart of each host, and the waits between these
MOST_ROUNDS = (MOST_ATTEMPTS + len(VMS) + 1) * (PATIENCE / ROUND + 1)
COURSES = 2000
RESULTS = ("approved", "started", "failed", "not_found", "not_due", "lost")


class Run:
    """A run of the role for one event; each host is the VM of its name."""

    def __init__(self, chance):
        self.chance = chance
        self.kind = chance.choice(EVENT_TYPES)
        self.boots = dict.fromkeys(VMS, 1)
        self.variables = {vm: self.prepared(vm) for vm in VMS}
        self.state = None
        self.sent = []
        # of all rounds
        self.answers = []
        self.now = 0.0

    def happens(self, percent):
        return self.chance.random() * 100 < percent

    def listing(self):
        """Return the events of one answer."""
        if self.happens(2):
            return []
        resources = self.chance.choice([VMS[:2], VMS[1:], (*VMS, "elsewhere")]) if self.happens(3) else VMS
        status = "Started" if self.happens(2) else "Scheduled"
        event = {"event_id": "Ab-1", "key": "ab-1", "event_type": self.kind, "status": status, "due": True}
        return [dict(event, resources=list(resources), not_before="2026-11-21T12:15:00Z")]

    def done(self, boot):
        """Return a preparation, which is mostly for the type of the event."""
        kind = self.chance.choice(EVENT_TYPES) if self.happens(10) else self.kind
        return {"at": AT, "boot": str(boot), "types": [kind]}

    def prepared(self, vm):
        events = self.listing()
        info = {"available": True, "resource_name": vm, "events": events, "note": None, "boot": "1"}
        return {
            "maintenance__check": {"prepare": {"tasks": "drain.yml", "role": ""}},
            "maintenance__info": info,
            "maintenance__note": {"note": {"events": events}},
            "maintenance__prepared": self.done(1),
        }

    def hosts(self):
        return hosts_of(VMS, self.variables)

    def read(self):
        """Read the prepared hosts of the open events, of which some have restarted or do not answer."""
        self.now += ROUND
        for vm, own in self.variables.items():
            self.boots[vm] += self.happens(10)
            seen = {"skipped": True}
            is_open = self.state is None or any(vm in names for names in self.state["open"].values())
            if is_open and "at" in own["maintenance__prepared"]:
                seen = {"available": True, "events": self.listing(), "boot": str(self.boots[vm])}
                if self.happens(20):
                    seen = self.chance.choice([{"unreachable": True}, {"failed": True}, {"available": False}, {}])
            self.variables[vm] = dict(own, maintenance__seen=seen)
            self.answers += [own["maintenance__info"], seen]
        self.state = decide_approvals(self.hosts(), self.state, self.now, PATIENCE)

    def approve(self, results=RESULTS):
        """Send the approvals of the round; each has one of the results."""
        for decision in self.state["decisions"]:
            if decision["approve"]:
                self.check(decision)
                self.sent.append(decision["by"])
                result = self.chance.choice(results)
                item = {"item": {"event_id": "AB-1"}, "approvals": [{"outcome": result, "reason": "so"}]}
                sent = {"results": [dict(item, failed=result == "failed")] if result != "lost" else []}
                own = self.variables[decision["by"]]
                self.variables[decision["by"]] = dict(own, maintenance__approvals=sent)
        self.state = after_approvals(self.state, self.hosts(), self.now)

    def prepare_again(self):
        for vm in self.state["prepare_again"]:
            done = {"why_not": "no luck"} if self.happens(20) else self.done(self.boots[vm])
            self.variables[vm] = dict(self.variables[vm], maintenance__prepared=done)

    def check(self, decision):
        """Assert that each VM that an answer of the run names is prepared, by the facts of this round."""
        events = [event for answer in self.answers for event in answer.get("events", ())]
        assert {event["status"] for event in events} == {"Scheduled"}
        released = {vm for event in events for vm in event["resources"]}
        assert set(decision["resources"]) == released <= set(VMS)
        for vm in released:
            done, seen = self.variables[vm]["maintenance__prepared"], self.variables[vm]["maintenance__seen"]
            assert done["boot"] == seen["boot"] == str(self.boots[vm]) and counts_for(done["types"][0], self.kind)
            assert vm in seen["events"][0]["resources"]


def test_no_course_releases_an_unprepared_vm_and_three_hosts_send_once():
    courses = set()
    for seed in range(COURSES):
        run, rounds = Run(random.Random(seed)), 0
        while run.state is None or run.state["open"]:
            run.read()
            run.approve()
            run.prepare_again()
            rounds += 1
            assert rounds <= MOST_ROUNDS, seed
        assert len(run.sent) == len(set(run.sent)) <= MOST_ATTEMPTS, seed
        courses.add((tuple(run.sent), bool(run.state["approved"]), bool(run.state["restarted"])))
    # the courses are not all alike: a third host approves after two others, also after a restart
    for restarted in (False, True):
        assert (VMS[:MOST_ATTEMPTS], True, restarted) in courses


class CalmRun(Run):
    """A run of hosts that nothing happens to."""

    def happens(self, percent):
        return False


@pytest.mark.parametrize("result", ["not_found", "not_due", "failed", "lost"])
def test_approval_that_did_not_succeed_goes_to_the_next_host(result):
    run = CalmRun(random.Random(1))
    for results in ([result], ["approved"]):
        run.read()
        run.approve(results)
    assert run.sent == ["vm1", "vm2"] and run.state["approved"] and not run.state["open"]


def test_vm_that_only_an_earlier_round_names_is_not_forgotten():
    run = CalmRun(random.Random(1))
    other = [dict(run.listing()[0], event_id="Ab-2", key="ab-2", resources=["vm3"])]
    pair, three = ([dict(run.listing()[0], resources=list(vms))] for vms in (VMS[:2], VMS[:3]))
    for vm, events in (("vm1", pair), ("vm2", pair), ("vm3", other)):
        info = dict(run.variables[vm]["maintenance__info"], events=events)
        run.variables[vm].update(maintenance__info=info, maintenance__note={"note": {"events": events}})
    run.variables.pop("vm4")
    # a document of vm1 names vm3, which does not answer; the next one does not
    for seen in ({"vm1": three, "vm2": pair}, {"vm1": pair, "vm2": pair, "vm3": other}):
        for vm, own in run.variables.items():
            own["maintenance__seen"] = {"available": vm in seen, "events": seen.get(vm, []), "boot": "1"}
        run.state = decide_approvals(hosts_of(run.variables, run.variables), run.state, run.now, PATIENCE)
    (decision,) = (each for each in run.state["decisions"] if each["key"] == "ab-1")
    assert (decision["approve"], decision["code"]) == (False, "not_listed")
    assert decision["resources"] == ["vm1", "vm2", "vm3"]


def test_event_that_has_started_is_not_approved_by_another_host():
    run = CalmRun(random.Random(1))
    run.read()
    run.approve(["started"])
    assert run.sent == ["vm1"] and not run.state["open"] and run.state["refusals"]["ab-1"]["code"] == "started"


def _keys_of_a_round(number):
    """Return how often a round of so many hosts, each with an event of its own, asks for the key of a VM."""
    event = CalmRun(random.Random(1)).listing()[0]
    variables = {}
    for name in map("vm{}".format, range(number)):
        events = [dict(event, event_id=name, key=name, resources=[name])]
        variables[name] = {
            "maintenance__info": {"available": True, "resource_name": name, "events": events},
            "maintenance__note": {"note": {"events": events}},
            "maintenance__prepared": {"at": AT, "types": [event["event_type"]]},
            "maintenance__seen": {"available": True, "events": events},
        }
    before = vm_key.cache_info()
    state = decide_approvals(hosts_of(variables, variables), None, 0.0, PATIENCE)
    assert all(decision["approve"] for decision in state["decisions"]) and len(state["decisions"]) == number
    after = vm_key.cache_info()
    return after.hits + after.misses - before.hits - before.misses


def test_work_of_a_round_does_not_grow_with_the_cube_of_the_hosts():
    assert _keys_of_a_round(60) < 5 * _keys_of_a_round(30)


def test_event_that_became_less_severe_is_approved_as_what_it_is_now():
    run = CalmRun(random.Random(1))
    run.kind = "Redeploy"
    run.variables = {vm: run.prepared(vm) for vm in VMS}
    run.kind = "Freeze"
    run.read()
    (decision,) = run.state["decisions"]
    assert (decision["approve"], decision["event_type"]) == (True, "Freeze")
