# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan of a maintenance run: which events it takes, which ones wait, and for how long the hosts may prepare."""

from __future__ import annotations

import itertools
from datetime import datetime, timezone

import pytest
from ansible_collections.azure_imds.scheduled_events.plugins.plugin_utils._maintenance.hosts import hosts_of
from ansible_collections.azure_imds.scheduled_events.plugins.plugin_utils._maintenance.limits import (
    Limits,
    parse_limits,
)
from ansible_collections.azure_imds.scheduled_events.plugins.plugin_utils._maintenance.plan import (
    MaintenancePlan,
    describe,
    table_of_plan,
)
from ansible_collections.azure_imds.scheduled_events.plugins.plugin_utils._maintenance.report import table_of

SERVER_TIME = "2026-11-21T12:00:00Z"
# the controller's clock is wrong by a day, and reading the events took 20 seconds
NOW = datetime(2026, 11, 22, 12, 0, 20, tzinfo=timezone.utc).timestamp()


def event(name, *vms, minute=15, **changes):
    """Return an event that starts some minutes after the events were read."""
    known = {
        "event_id": name,
        "event_type": "Reboot",
        "status": "Scheduled",
        "resources": list(vms),
        "not_before": f"2026-11-21T12:{minute:02d}:00Z",
        "key": name.casefold(),
        "due": True,
    }
    return dict(known, **changes)


def host(vm, *events, note=None, domain="0", **changes):
    """Return the variables of a host whose document has these events, those of its own VM."""
    info = {
        "available": True,
        "resource_name": vm,
        "events": [each for each in events if vm in each["resources"]],
        "note": None if note is None else {"events": list(note)},
        "server_time": SERVER_TIME,
        "fault_domain": domain,
    }
    return {
        "maintenance__check": {"prepare": {"tasks": "drain.yml", "role": ""}, "at": NOW - 20},
        "maintenance__info": dict(info, **changes),
    }


def plan(hosts, **limits):
    chosen = Limits(frozenset(limits.pop("group", hosts)), **limits)
    return MaintenancePlan(hosts_of(hosts, hosts), chosen, NOW)


def actions(hosts, **limits):
    """Return for each event what the run does about it, and why."""
    return {each["event_id"]: (each["action"], each["because"]) for each in plan(hosts, **limits).events}


def fleet(*events, **more):
    """Return hosts a, b, c and d with the VMs of the same names."""
    return {vm: host(vm, *events, **more.get(vm, {})) for vm in "abcd"}


A, B, C, D = (event(name, vm) for name, vm in zip("ABCD", "abcd"))
TAKEN, FULL = ("prepare", ""), ("wait", "at_most")


@pytest.mark.parametrize("not_before", ["9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z"])
def test_time_that_azure_does_not_mean_ends_no_run(not_before):
    strange = event("C", "c", not_before=not_before)
    found = plan(fleet(A, B, strange), at_most=3)
    assert {each["event_id"] for each in found.events if each["action"] == "prepare"} == {"A", "B", "C"}
    assert found.hosts()["c"]["starts_at"]["c"] >= "2026-11-22T12:00:20"


def test_without_limits_all_due_events_are_taken():
    later = event("C", "c", due=False)
    assert actions(fleet(A, B, later)) == {"A": TAKEN, "B": TAKEN}


def test_at_most_takes_the_earliest_events():
    earlier = event("D", "d", minute=10)
    assert actions(fleet(A, B, C, earlier), at_most=2) == {"D": TAKEN, "A": TAKEN, "B": FULL, "C": FULL}


def test_advice_waits_for_later_interruptions():
    advice = event("A", "a", event_type="SpotRebalanceRecommendation", minute=10)
    assert actions(fleet(advice, B), at_most=1) == {"B": TAKEN, "A": FULL}


def test_hosts_of_one_event_are_taken_together_or_not_at_all():
    pair = event("P", "b", "c")
    assert actions(fleet(A, pair), at_most=2) == {"A": TAKEN, "P": FULL}
    assert actions(fleet(A, pair), at_most=3) == {"A": TAKEN, "P": TAKEN}


def test_smaller_event_that_fits_does_not_wait_for_a_larger_one():
    pair = event("P", "b", "c", minute=16)
    later = event("D", "d", minute=17)
    assert actions(fleet(A, pair, later), at_most=2) == {"A": TAKEN, "P": FULL, "D": TAKEN}


def test_event_that_is_larger_than_the_limit_is_taken_alone():
    trio = event("T", "a", "b", "c", minute=10)
    assert actions(fleet(trio, D), at_most=2) == {"T": ("prepare", "alone"), "D": FULL}


def test_two_events_of_one_host_count_once():
    assert actions(fleet(A, event("A2", "a", minute=20)), at_most=1) == {"A": TAKEN, "A2": TAKEN}


def test_host_with_a_note_of_an_earlier_run_counts():
    hosts = fleet(A, B, b={"note": []})
    assert actions(hosts, at_most=1) == {"A": FULL, "B": TAKEN}
    waiting = next(each for each in plan(hosts, at_most=1).events if each["action"] == "wait")
    assert waiting["waits_for"] == ["b"]


def test_event_that_an_earlier_run_has_begun_goes_first():
    pair = event("P", "c", "d", minute=25)
    hosts = fleet(A, pair, c={"note": [pair]})
    assert actions(hosts, at_most=2) == {"P": TAKEN, "A": FULL}
    # although it is larger than the limit: only its own hosts are out of service
    assert actions(hosts, at_most=1) == {"P": ("prepare", "alone"), "A": FULL}


@pytest.mark.parametrize("lost", [{"available": False}, {"unreachable": True}])
def test_host_whose_state_is_unknown_counts(lost):
    hosts = fleet(A)
    hosts["d"]["maintenance__info"].update(lost)
    assert actions(hosts, at_most=1) == {"A": FULL} and actions(hosts, at_most=2) == {"A": TAKEN}


def test_started_event_counts_and_needs_no_preparation():
    started = event("B", "b", status="Started", not_before=None)
    assert actions(fleet(A, started), at_most=1) == {"B": ("no_preparation", "started"), "A": FULL}
    assert plan(fleet(started)).hosts()["b"]["prepares_for"] == []


def test_hosts_outside_of_the_group_do_not_count():
    assert actions(fleet(A, B, C), at_most=1, group="ab") == {"A": TAKEN, "B": FULL, "C": TAKEN}


def test_limit_yields_to_an_event_that_starts_soon():
    # 280 seconds are left of the 300: it took 20 to read the events
    soon = event("B", "b", minute=5)
    hosts = fleet(soon, A, a={"note": [A]})
    assert actions(hosts, at_most=1) == {"A": TAKEN, "B": ("prepare", "not_before")}
    assert actions(hosts, at_most=1, yield_within=279) == {"A": TAKEN, "B": FULL}
    # the time counts to the deadline
    assert actions(hosts, at_most=1, yield_within=220, deadline=60)["B"] == ("prepare", "not_before")


def test_run_with_waiting_events_ends_when_the_first_of_them_no_longer_waits():
    hosts = fleet(A, B, event("C", "c", minute=14))
    # 12:15 less 300 and 60 seconds
    assert plan(hosts, at_most=1, deadline=60).yields_at == "2026-11-22T12:09:00.000000Z"
    assert plan(hosts).yields_at is None


def test_one_fault_domain_at_a_time():
    domains = {"a": "0", "b": "0", "c": "1", "d": "2"}
    hosts = {vm: host(vm, A, B, C, domain=domain) for vm, domain in domains.items()}
    other = ("wait", "fault_domain")
    assert actions(hosts, one_fault_domain=True) == {"A": TAKEN, "B": TAKEN, "C": other}
    hosts["d"]["maintenance__info"]["note"] = {"events": []}
    assert actions(hosts, one_fault_domain=True) == {"A": other, "B": other, "C": other}


def test_event_of_two_fault_domains_is_taken_alone():
    pair = event("P", "a", "b", minute=10)
    hosts = {vm: host(vm, pair, C, domain=domain) for vm, domain in zip("abc", "010")}
    assert actions(hosts, one_fault_domain=True) == {"P": ("prepare", "alone"), "C": ("wait", "fault_domain")}


def test_unknown_fault_domain_is_one_of_its_own():
    hosts = {vm: host(vm, A, B, domain="") for vm in "ab"}
    assert actions(hosts, one_fault_domain=True) == {"A": TAKEN, "B": ("wait", "fault_domain")}


def test_preparation_ends_at_the_deadline_and_does_not_begin_after_it():
    hosts = fleet(A, event("A2", "a", minute=14))
    own = plan(hosts, deadline=60).hosts()["a"]
    assert own["prepares_for"] and own["ends_at"] == "2026-11-22T12:13:00.000000Z"
    assert plan(hosts).hosts()["a"]["ends_at"] is None
    late = actions(hosts, deadline=14 * 60 - 20)
    assert late == {"A2": ("no_preparation", "deadline"), "A": TAKEN}
    assert plan(hosts, deadline=15 * 60).hosts()["a"]["prepares_for"] == []


def test_wrong_date_of_one_host_makes_no_event_late():
    wrong = {"d": {"server_time": "2027-11-21T12:00:00Z"}}
    assert actions(fleet(A, B, **wrong), at_most=1, deadline=60) == {"A": TAKEN, "B": FULL}


def test_host_that_an_earlier_batch_has_read_long_ago_makes_no_event_late():
    hosts = fleet(A, b={"server_time": "2026-11-21T11:46:40Z"})
    hosts["b"]["maintenance__check"]["at"] = NOW - 820
    assert actions(hosts, deadline=300) == {"A": TAKEN}


def test_hosts_of_a_waiting_event_do_not_take_part():
    pair = event("P", "b", "c", minute=25)
    own = plan(fleet(A, pair), at_most=2).hosts()
    assert [own[name]["events"] for name in "abcd"] == [["a"], [], [], []]
    # but a host that an earlier run has prepared remains prepared
    own = plan(fleet(event("A", "a", "d"), pair, b={"note": [pair]}, a={"note": [A]}), at_most=2).hosts()
    assert own["b"]["prepares_for"] and own["c"]["events"] == []


def test_waves_are_in_the_order_of_urgency():
    events = [event(name, vm, minute=minute) for name, vm, minute in zip("ABCD", "abcd", (18, 17, 16, 15))]
    waves = {each["event_id"]: each["wave"] for each in plan(fleet(*events), at_most=1).events}
    assert waves == {"D": 1, "C": 2, "B": 3, "A": 4}


def test_plan_says_whether_an_event_will_be_approved():
    outside = event("O", "a", "elsewhere")
    hosts = fleet(outside, B, C)
    hosts["c"]["maintenance__check"]["prepare"]["tasks"] = ""
    found = {each["event_id"]: (each["approve"], each["why_not"]) for each in plan(hosts).events}
    assert found["B"] == (True, "") and not found["O"][0] and "elsewhere" in found["O"][1] and not found["C"][0]


@pytest.mark.parametrize("name, value", [("event_type", "Hibernate"), ("source", "Customer"), ("status", "Paused")])
def test_event_with_an_unknown_value_will_not_be_approved(name, value):
    (planned,) = plan(fleet(dict(A, **{name: value}))).events
    assert not planned["approve"] and f"{value!r} is unknown" in planned["why_not"]
    assert planned["action"] == ("no_preparation" if name == "status" else "prepare")


def test_ready_hooks_prepare_only_for_events_that_the_plan_prepares():
    odd = event("O", "a", event_type="Freeze", status="Paused")
    hosts = {"a": host("a", odd, event("R", "a", event_type="Redeploy", minute=20))}
    hosts["a"]["maintenance__check"]["ready_hooks"] = True
    own = plan(hosts).hosts()["a"]
    assert (own["prepares_for"], own["types"]) == (["r"], ["Redeploy"])
    assert sorted(each["why_not"] for each in plan(hosts).events) == ["", "its status 'Paused' is unknown"]


def test_event_that_one_host_lists_as_started_is_started_for_all():
    own = event("A", "a")
    assert actions({"a": host("a", own), "b": host("b", events=[dict(own, status="Started")])}) == {
        "A": ("no_preparation", "started")
    }


def test_names_of_the_first_api_version_are_hosts_of_the_play():
    listed = [event("A", "_a", "_b")]
    (planned,) = plan({name: host(name, events=listed) for name in ("a", "b")}).events
    assert (planned["hosts"], planned["approve"], planned["why_not"]) == (["a", "b"], True, "")


def test_plan_says_that_an_event_with_a_vm_that_two_hosts_claim_is_not_approved():
    (planned,) = plan({"a": host("a", A), "b": host("a", A)}).events
    assert (planned["hosts"], planned["approve"]) == (["a", "b"], False) and "claim" in planned["why_not"]


def test_host_with_a_wrong_resource_id_prepares_without_an_approval():
    hosts = fleet(A)
    hosts["a"]["maintenance__check"]["arm"] = {"vm": "other"}
    (planned,) = plan(hosts).events
    assert (planned["hosts"], planned["approve"]) == (["a"], False) and planned["why_not"].startswith("a: no host")
    assert plan(hosts).hosts()["a"]["prepares_for"]


def test_preparation_for_a_freeze_does_not_count_for_a_later_terminate():
    freeze, terminate = event("F", "a", event_type="Freeze"), event("T", "a", event_type="Terminate", minute=25)
    hosts = {"a": host("a", freeze, terminate)}
    # tasks get all events
    assert plan(hosts).hosts()["a"]["types"] == ["Freeze", "Terminate"]
    assert [each["approve"] for each in plan(hosts).events] == [True, True]
    # ready hooks get the most urgent one
    hosts["a"]["maintenance__check"]["ready_hooks"] = True
    assert plan(hosts).hosts()["a"]["types"] == ["Freeze"]
    found = {each["event_id"]: (each["approve"], each["why_not"]) for each in plan(hosts).events}
    assert found == {"F": (True, ""), "T": (False, "a: its preparation does not count for Terminate")}
    # a preparation for an event that comes soon does not begin
    soon = event("T", "a", event_type="Terminate", minute=1)
    assert plan({"a": host("a", freeze, soon)}, deadline=90).hosts()["a"]["types"] == ["Freeze"]


def test_host_prepares_for_the_type_that_its_own_document_has():
    # its tasks and ready hooks get the event as the host has read it
    ahead, behind = (event("e", "a", "b", event_type=kind) for kind in ("Redeploy", "Freeze"))
    hosts = {"a": host("a", ahead), "b": host("b", behind)}
    assert {name: own["types"] for name, own in plan(hosts).hosts().items()} == {"a": ["Redeploy"], "b": ["Freeze"]}
    (planned,) = plan(hosts).events
    assert not planned["approve"] and planned["why_not"].startswith("its VMs list it with different types")


def test_table_has_a_line_for_each_event():
    limits = Limits(frozenset("abcd"), at_most=1)
    events = [dict(each, why=describe(each, limits)) for each in plan(fleet(A, B), at_most=1).events]
    head, first, second = table_of_plan(events)
    assert head.split() == ["event", "not", "before", "hosts", "wave", "action", "approve", "why"]
    assert first.split() == ["Reboot", "A", "2026-11-21T12:15:00Z", "a", "1", "prepare", "yes"]
    assert second.split()[4:7] == ["2", "wait", "no"] and second.endswith("at most 1 host at a time; out of service: a")
    assert table_of_plan([]) == ["no host has an event to prepare for"]


@pytest.mark.parametrize("order", list(itertools.permutations("ABC")))
def test_plan_does_not_depend_on_the_order_of_the_hosts(order):
    events = {"A": event("A", "a", "b"), "B": event("B", "b", "c", minute=16), "C": event("C", "d", minute=17)}
    hosts = {vm: host(vm, *(events[name] for name in order)) for vm in ("abcd" if order[0] == "A" else "dcba")}
    assert actions(hosts, at_most=2) == {"A": TAKEN, "B": FULL, "C": FULL}


LIMITS = [(2, 2), ("2", 2), ("25%", 1), ("50%", 2), ("74%", 2), ("100%", 4), ("1%", 1), (None, None), ("", None)]


@pytest.mark.parametrize(("given", "number"), LIMITS)
def test_number_or_share_of_hosts(given, number):
    assert parse_limits({"at_most": given}, list("abcd"), {}).at_most == number


@pytest.mark.parametrize(
    ("options", "subject"),
    [
        ({"at_most": 0}, "maintenance_at_most"),
        ({"at_most": "0%"}, "maintenance_at_most"),
        ({"at_most": "101%"}, "maintenance_at_most"),
        ({"at_most": 1.5}, "maintenance_at_most"),
        ({"at_most": "half"}, "maintenance_at_most"),
        ({"group": "web", "at_most": 1}, "maintenance_group"),
        ({"group": "no_such_group"}, "maintenance_group"),
        ({"deadline": -1}, "maintenance_deadline"),
        ({"yield": "soon"}, "maintenance_yield"),
    ],
)
def test_unusable_limit_is_refused(options, subject):
    with pytest.raises(ValueError, match=subject):
        parse_limits(options, ["a"], {"web": ["a", "b"]})


def test_share_is_that_of_the_group():
    hosts = [f"vm{number}" for number in range(20)]
    limits = parse_limits({"group": "web", "at_most": "25%"}, hosts, {"web": hosts[:8]})
    assert limits.at_most == 2 and limits.group == frozenset(hosts[:8])


def test_texts_of_imds_steer_no_terminal_in_the_tables():
    odd = "\x1b[2J\x9b31m\u202e\n"
    planned = [dict(each, event_type=odd, why=odd) for each in plan(fleet(A)).events]
    times = dict.fromkeys(("not_before", "moved_to", "prepared", "approved", "started", "over", "recovered"))
    row = {"host": "a", "event_id": odd, "event_type": odd, "outcome": "failed", "why_not": odd, **times}
    lines = table_of_plan(planned) + table_of([row])
    assert len(lines) == 4 and all(line.isprintable() for line in lines)
