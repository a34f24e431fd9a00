# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decisions and reports for each state of a host."""

from __future__ import annotations

import itertools

import pytest
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.event_types import (
    EVENT_TYPES,
)
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.urgency import (
    counts_for,
)
from ansible_collections.azure_imds.scheduled_events.plugins.plugin_utils._maintenance.approval_attempts import (
    last_results,
    no_attempts,
)
from ansible_collections.azure_imds.scheduled_events.plugins.plugin_utils._maintenance.approvals import (
    after_approvals,
    decide_approvals,
)
from ansible_collections.azure_imds.scheduled_events.plugins.plugin_utils._maintenance.hosts import hosts_of
from ansible_collections.azure_imds.scheduled_events.plugins.plugin_utils._maintenance.report import (
    compose_report,
    table_of,
)

EVENT = {
    "event_id": "Ab-1",
    "event_type": "Reboot",
    "status": "Scheduled",
    "resources": ["VM1", "vm2"],
    "not_before": "2026-11-21T12:15:00Z",
    "key": "ab-1",
    "due": True,
}
AT, NOON = "2026-11-21T12:00:00.000000Z", 1795262400.0
FAILED = {"failed": True, "msg": "no luck"}


def prepared(vm, *events, **changes):
    """Return the variables of a host that has prepared, and that was read again since then."""
    events = events or (EVENT,)
    info = {"available": True, "resource_name": vm, "events": list(events), "note": None, "boot": "boot 1"}
    variables = {
        "maintenance__check": {"prepare": {"tasks": "drain.yml", "role": ""}},
        "maintenance__info": info,
        "maintenance__note": {"note": {"events": list(events)}},
        "maintenance__prepared": {"at": AT, "boot": "boot 1", "types": [event["event_type"] for event in events]},
        "maintenance__seen": changes.get("info", info),
    }
    return dict(variables, **{"maintenance__" + name: value for name, value in changes.items()})


def recovered(vm, *events, **changes):
    """Return the variables of a host whose maintenance is complete."""
    over = [
        dict(event, status="Started", not_before=None, listed=False, started=AT, over=AT)
        for event in events or (EVENT,)
    ]
    return prepared(vm, *events, **{"wait": {"outcome": "over", "events": over}, "recovered": {"at": AT}, **changes})


def decided(hosts, before=None, now=0.0, patience=120.0, of_caller=None):
    """Return the state after the reads of a round."""
    return decide_approvals(hosts_of(hosts, hosts), before, now, patience, of_caller)


def decisions(**hosts):
    return decided(hosts)["decisions"]


def report(state=None, **hosts):
    return {row["host"]: row for row in compose_report(hosts_of(hosts, hosts), state or no_attempts())}


def problem(**hosts):
    (host,) = hosts_of(hosts, hosts)
    return host.problem()


def test_event_is_approved_by_the_host_of_its_first_vm():
    (decision,) = decisions(b=prepared("vm2"), a=prepared("vm1"))
    assert decision == {
        "key": "ab-1",
        "event_id": "Ab-1",
        "event_type": "Reboot",
        "resources": ["VM1", "vm2"],
        "senders": ["a", "b"],
        "by": "a",
        "approve": True,
        "code": "",
        "why_not": "",
        "waits": False,
    }


@pytest.mark.parametrize("name", ["*", "vm?", "[a-z]m2"])
def test_name_that_event_approve_would_read_as_a_pattern_is_no_vm(name):
    event = dict(EVENT, resources=["vm1", name])
    (decision,) = decisions(a=prepared("vm1", event), b=prepared(name, event))
    assert not decision["approve"] and decision["code"] == "unknown_vm"


NOT_READY = {
    "the preparation failed": {"prepared": {"why_not": "no luck"}},
    "the host was lost during the preparation": {"prepared": {}},
    "it has no preparation": {"prepared": {}, "check": {"prepare": {"tasks": "", "role": ""}}},
    "no luck": {"note": FAILED, "prepared": {}},
    "the host is not prepared": {"note": {"note": None}},
    "does not list this event for itself": {
        "info": {"available": True, "resource_name": "vm2", "events": [], "note": None}
    },
}


@pytest.mark.parametrize("reason", NOT_READY)
def test_event_is_not_approved_if_a_vm_is_not_ready(reason):
    (decision,) = decisions(a=prepared("vm1"), b=prepared("vm2", **NOT_READY[reason]))
    assert not decision["approve"] and decision["why_not"].startswith("vm2: ") and reason in decision["why_not"]


@pytest.mark.parametrize(
    "other", [{}, {"maintenance__info": FAILED}, {"maintenance__info": {"available": False, "reason": "no IMDS"}}]
)
def test_event_is_not_approved_if_a_vm_is_not_a_readable_host(other):
    (decision,) = decisions(a=prepared("vm1"), b=other)
    assert not decision["approve"] and decision["why_not"].startswith("vm2: no host of this play")


IN_BOTH_ORDERS = pytest.mark.parametrize("order", ["abc", "cba"])


@IN_BOTH_ORDERS
def test_vm_that_only_its_own_host_lists_has_to_be_prepared(order):
    hosts = {"a": prepared("vm1", dict(EVENT, resources=["vm1"])), "b": prepared("vm2", prepared={}), "c": {}}
    (decision,) = decisions(**{name: hosts[name] for name in order})
    assert (decision["approve"], decision["code"]) == (False, "not_prepared")
    assert {vm.casefold() for vm in decision["resources"]} == {"vm1", "vm2"}


@pytest.mark.parametrize(
    ("vms", "more", "code"),
    [
        (["VM1"], {}, ""),
        (["vm1", "vm2"], {}, ""),
        (["vm1", "vm9"], {}, "unknown_vm"),
        # a host of the play whose own document does not name it for the event
        (["vm3"], {}, "not_listed"),
        ([], {}, "unreadable"),
        (["vm1"], {"status": "Started"}, "started"),
        (["vm1"], {"event_type": "Redeploy"}, "types_differ"),
        (["vm1"], {"event_type": ""}, "unknown_type"),
    ],
)
def test_vms_that_only_the_caller_names_have_to_be_prepared(vms, more, code):
    hosts = {name: prepared(vm) for name, vm in (("a", "vm1"), ("b", "vm2"))}
    hosts["c"] = prepared("vm3", dict(EVENT, event_id="Ab-2", key="ab-2", resources=["vm3"]))
    of_caller = {"ab-1": [{**EVENT, **more, "resources": vms}]}
    first, second = decided(hosts, of_caller=of_caller)["decisions"]
    assert (first["approve"], first["code"], first["by"]) == (not code, code, "a")
    assert {vm.casefold() for vm in first["resources"]} == {"vm1", "vm2", *map(str.casefold, vms)}
    assert second["approve"]


@IN_BOTH_ORDERS
def test_vm_that_a_host_lists_which_does_not_take_part_has_to_be_prepared(order):
    # Azure began to list the event as Started on one host
    started = {"available": True, "resource_name": "vm2", "events": [dict(EVENT, status="Started")], "note": None}
    hosts = {"a": prepared("vm1", dict(EVENT, resources=["vm1"])), "b": {"maintenance__info": started}, "c": {}}
    (decision,) = decisions(**{name: hosts[name] for name in order})
    assert (decision["approve"], decision["code"]) == (False, "started")
    assert "vm2: " in decision["why_not"]


@IN_BOTH_ORDERS
def test_vm_that_two_hosts_claim_is_not_released(order):
    hosts = {"a": prepared("vm1"), "b": prepared("vm2", prepared={}), "c": prepared("VM2")}
    (decision,) = decisions(**{name: hosts[name] for name in order})
    assert (decision["approve"], decision["code"]) == (False, "claimed_twice")
    assert "vm2: " in decision["why_not"] and "b" in decision["why_not"]


def test_event_without_vms_is_not_approved():
    (decision,) = decisions(a=prepared("vm1", dict(EVENT, resources=[])))
    assert not decision["approve"] and decision["by"] == "" and decision["why_not"] == "the event names no VM"


def test_event_that_waits_for_a_later_run_is_not_approved():
    waiting = {"event_id": "Ab-1", "event_type": "Reboot", "action": "wait", "why": "too many"}
    plan = {"events": [waiting], "hosts": {"a": {"prepares_for": ["ab-1"]}, "b": {"prepares_for": []}}}
    other = {"maintenance__info": prepared("vm2")["maintenance__info"], "maintenance__plan": plan}
    (decision,) = decisions(a=prepared("vm1", plan=plan), b=other)
    assert (decision["approve"], decision["code"]) == (False, "waiting") and "too many" in decision["why_not"]
    row = report(a=prepared("vm1", plan=plan), b=other)["b"]
    assert (row["outcome"], row["why_not"]) == ("waiting", "too many")


def test_host_that_the_plan_does_not_prepare_has_not_failed():
    late = {"event_id": "Ab-1", "event_type": "Reboot", "action": "no_preparation", "why": "too late"}
    plan = {"events": [late], "hosts": {"a": {"prepares_for": []}}}
    host = recovered("vm1", prepared={}, plan=plan)
    assert problem(a=host) == "" and report(a=host)["a"]["outcome"] == "unprepared"
    (decision,) = decisions(a=host)
    assert "VM1: too late" in decision["why_not"]


@pytest.mark.parametrize("outcome", ["removed", "continues"])
def test_host_for_which_the_run_stopped_waiting_has_not_failed(outcome):
    host = recovered("vm1", wait={"outcome": outcome, "msg": "a reason", "events": []}, recovered={})
    row = report(a=host)["a"]
    assert problem(a=host) == "" and (row["outcome"], row["why_not"]) == (outcome, "a reason")


def test_moved_event_is_reported_with_both_times():
    moved = {"event_id": "Ab-1", "event_type": "Reboot", "status": "Started", "resources": ["VM1"], "not_before": None}
    moved.update(started=AT, over=AT, last_not_before="2026-11-21T12:45:00Z")
    row = report(a=recovered("vm1", wait={"outcome": "over", "events": [moved]}))["a"]
    assert (row["not_before"], row["moved_to"]) == ("2026-11-21T12:15:00Z", "2026-11-21T12:45:00Z")
    assert "12:15:00>12:45:00" in table_of([row])[1]


def test_event_that_has_started_needs_no_decision():
    assert decisions(a=prepared("vm1", dict(EVENT, status="Started"))) == []


def test_event_with_an_unknown_status_is_not_approved():
    (decision,) = decisions(a=prepared("vm1", dict(EVENT, status="Paused")), b=prepared("vm2"))
    assert (decision["approve"], decision["code"]) == (False, "unknown_status")


def test_event_of_an_earlier_note_that_is_not_listed_needs_no_decision():
    note = {"note": {"events": [dict(EVENT, event_id="old")]}}
    assert decisions(a=prepared("vm1", note=note, info={"resource_name": "vm1", "events": []})) == []


def test_host_with_complete_maintenance_has_no_problem_and_all_times():
    state = dict(no_attempts(), approved={"ab-1": {"at": AT, "code": "approved"}})
    rows = report(state, a=recovered("vm1"), b=recovered("vm2"))
    for row in rows.values():
        assert [row[step] for step in ("prepared", "approved", "started", "over", "recovered")] == [AT] * 5
        assert row["why_not"] == "" and row["not_before"] == "2026-11-21T12:15:00Z"
    assert problem(a=recovered("vm1")) == ""


PROBLEMS = {
    "the preparation failed: no luck": {"prepared": {"why_not": "no luck"}},
    "the end of its events was not awaited": {"wait": {}},
    "no luck": {"wait": dict(FAILED, outcome="timeout"), "recovered": {}},
    "the recovery failed: no luck": {"recovered": {"why_not": "no luck"}},
    "the host was lost during the recovery": {"recovered": {}},
    "its note is gone: another run has recovered it, or its disk was replaced; check whether it is in service": {
        "wait": {"outcome": "no_note", "events": []},
        "recovered": {},
    },
    "the note was not removed: no luck": {"released": FAILED},
}


@pytest.mark.parametrize("reason", PROBLEMS)
def test_problem_of_a_host_is_reported(reason):
    host = recovered("vm1", **PROBLEMS[reason])
    assert problem(a=host) == reason and reason in report(a=host)["a"]["why_not"]


@pytest.mark.parametrize(
    ("approval", "reason", "problems"),
    [
        ({"approvals": [{"outcome": "not_due", "reason": "more VMs have come"}]}, "more VMs have come", {"a": ""}),
        (FAILED, "the approval failed: no luck", {"a": "the approval failed: no luck"}),
    ],
)
def test_approval_that_is_no_longer_due_is_not_a_problem_of_the_host(approval, reason, problems):
    hosts = {"a": recovered("vm1", dict(EVENT, resources=["vm1"]))}
    state = after(decided(hosts), hosts, a=approval)
    hosts["a"]["maintenance__decided"] = state
    assert report(state, **hosts)["a"]["why_not"].startswith(f"not approved: {reason}")
    assert {"a": problem(**hosts)} == problems


def test_unreachable_host_has_a_row_without_an_event():
    row = report(a={"maintenance__info": {"unreachable": True, "msg": "no route"}})["a"]
    assert row["event_id"] == "" and row["why_not"] == "its scheduled events could not be read: no route"


def test_host_without_events_has_no_row():
    nothing = {
        "maintenance__info": {"available": True, "events": [dict(EVENT, due=False)], "note": None},
        "maintenance__note": {"skipped": True},
    }
    assert report(a=nothing) == {} and problem(a=nothing) == ""
    assert table_of([]) == ["no host has an event to prepare for"]


def test_table_has_a_line_for_each_row():
    rows = list(report(a=recovered("vm1"), b={"maintenance__info": FAILED}).values())
    head, first, second = table_of(rows)
    steps = ["prepared", "approved", "started", "over", "recovered"]
    assert head.split() == ["host", "event", "not", "before", *steps, "outcome", "why", "not"]
    times = ["12:15:00", "12:00:00", "-", "12:00:00", "12:00:00", "12:00:00"]
    assert first.split() == ["a", "Reboot", "Ab-1", *times, "completed"]
    assert second.split()[:9] == ["b", "-", "-", "-", "-", "-", "-", "-", "failed"]


def test_host_that_recovers_without_an_event_has_a_row():
    # another run had recovered it, and removed its note, before this run wrote one
    host = recovered("vm1")
    host["maintenance__info"] = {"available": True, "resource_name": "vm1", "events": [], "note": None}
    host["maintenance__note"] = {"note": {"events": []}}
    host["maintenance__wait"] = {"outcome": "over", "events": []}
    row = report(vm1=host)["vm1"]
    assert (row["event_id"], row["recovered"], row["why_not"]) == ("", AT, "")


def announced(vm, *events, **changes):
    """Return the variables of a host that has prepared for events of the caller."""
    host = prepared(vm, *events, **changes)
    host["maintenance__info"]["announced"] = True
    return host


def test_event_is_approved_by_the_first_host_that_reads_it_itself():
    (decision,) = decisions(a=announced("vm1"), b=prepared("vm2"))
    assert decision["approve"] and decision["by"] == "b"


def test_event_that_no_host_reads_is_approved_only_by_arm():
    (decision,) = decisions(a=announced("vm1"), b=announced("vm2"))
    assert not decision["approve"] and "set maintenance_approve_by to arm" in decision["why_not"]
    check = {"prepare": {"tasks": "drain.yml", "role": ""}, "approve_by": "arm"}
    (decision,) = decisions(a=announced("vm1", check=check), b=announced("vm2", check=check))
    assert decision["approve"] and decision["by"] == "a"


def test_module_believes_a_name_that_no_other_host_has():
    hosts = {"a": prepared("vm1"), "b": prepared("vm2"), "c": {"maintenance__info": FAILED}}
    (decision,) = decisions(**hosts)
    assert decision["approve"]


def check_by_arm(vm):
    """Return the result of maintenance_check on a host whose resource ID is that of the VM."""
    return {"prepare": {"tasks": "drain.yml", "role": ""}, "approve_by": "arm", "arm": {"vm": vm}}


@IN_BOTH_ORDERS
@pytest.mark.parametrize("resources", [["vm2"], ["vm3", "vm2"]])
def test_arm_approves_no_event_of_a_vm_that_another_host_claims(resources, order):
    event = dict(EVENT, resources=resources)
    # a is vm1; the host of vm2 cannot be read
    hosts = {
        "a": prepared("vm2", event, check=check_by_arm("vm1")),
        "b": {"maintenance__check": check_by_arm("vm2"), "maintenance__info": FAILED},
        "c": prepared("vm3", event, check=check_by_arm("vm3")),
    }
    (decision,) = decisions(**{name: hosts[name] for name in order})
    assert (decision["approve"], decision["code"]) == (False, "not_prepared")
    assert decision["why_not"].startswith("vm2: its scheduled events could not be read")


@IN_BOTH_ORDERS
def test_arm_approves_no_event_of_a_vm_whose_resource_id_two_hosts_have(order):
    hosts = {name: prepared(vm, check=check_by_arm(vm)) for name, vm in (("a", "vm1"), ("b", "vm2"), ("c", "vm2"))}
    (decision,) = decisions(**{name: hosts[name] for name in order})
    assert (decision["approve"], decision["code"]) == (False, "claimed_twice")


@pytest.mark.parametrize(
    "unknown", [{"event_type": "Hibernate"}, {"source": "Autoscaler"}, {"resource_type": "Disk"}], ids=str
)
def test_arm_approves_no_event_with_an_unknown_word(unknown):
    event = {**EVENT, "source": "Platform", "resource_type": "VirtualMachine", "resources": ["vm1"], **unknown}
    (decision,) = decisions(a=prepared("vm1", event, check=check_by_arm("vm1")))
    assert not decision["approve"]


def test_arm_names_the_option_if_no_resource_id_is_that_of_a_vm():
    (decision,) = decisions(a=prepared("vm1", check=check_by_arm("vm1")), b=prepared("vm2", check=check_by_arm("vm9")))
    assert decision["code"] == "unknown_vm" and "maintenance_arm_resource_id" in decision["why_not"]


def test_host_that_awaits_a_later_run_has_a_reason_but_no_problem():
    wait = {"outcome": "pending", "events": [dict(EVENT, listed=True, started=None, over=None)], "msg": "stays"}
    host = announced("vm1", wait=wait)
    assert problem(a=host) == "" and report(a=host)["a"]["why_not"] == "stays"


APPROVED = {"approvals": [{"outcome": "approved", "reason": "selected"}]}
UNREACHABLE = {"unreachable": True, "msg": "no route"}


def after(state, hosts, **results):
    """Return the state after the approvals of a round, with the results by host; a host without one was lost."""
    sent = {name: {"results": [dict(result, item={"event_id": "AB-1"})]} for name, result in results.items()}
    variables = {name: dict(own, maintenance__approvals=sent.get(name, {})) for name, own in hosts.items()}
    return after_approvals(state, hosts_of(variables, variables), NOON)


def restarted(vm, **changes):
    """Return the variables of a host that has restarted since its preparation."""
    host = prepared(vm, **changes)
    return dict(host, maintenance__seen=dict(host["maintenance__seen"], boot="boot 2"))


@pytest.mark.parametrize("lost", [{}, {"a": FAILED}, {"a": UNREACHABLE}], ids=str)
def test_next_host_sends_an_approval_that_failed(lost):
    hosts = {"a": prepared("vm1"), "b": prepared("vm2")}
    state = after(decided(hosts), hosts, **lost)
    assert state["open"] == {"ab-1": ["a", "b"]}
    state = decided(hosts, state)
    (decision,) = state["decisions"]
    assert decision["approve"] and decision["by"] == "b"
    approved = after(state, hosts, b=APPROVED)
    assert (approved["open"], approved["approved"], approved["refusals"]) == (
        {},
        {"ab-1": {"at": AT, "code": "approved"}},
        {},
    )


@pytest.mark.parametrize("senders", [["a", "a", "a"], ["a", "b", "a"]], ids=str)
def test_hosts_send_a_failing_approval_in_turn_three_times(senders):
    event = dict(EVENT, resources=["vm1", "vm2"][: len(set(senders))])
    hosts = {name: prepared(vm, event) for name, vm in zip(sorted(set(senders)), event["resources"])}
    states = [None]
    while states[-1] is None or states[-1]["open"]:
        ready = decided(hosts, states[-1])
        assert ready["decisions"][0]["approve"]
        states.append(after(ready, hosts, **{ready["decisions"][0]["by"]: FAILED}))
    assert [state["refusals"]["ab-1"]["by"] for state in states[1:]] == senders
    # Azure has added a VM since the first attempt
    joined = dict(hosts["a"]["maintenance__info"], events=[dict(event, resources=["vm1", "vm2", "vm3"])])
    hosts["a"]["maintenance__seen"] = joined
    (decision,) = decided(hosts, states[1])["decisions"]
    assert (decision["approve"], decision["code"]) == (False, "unknown_vm")


def test_event_that_azure_has_started_after_a_lost_answer_is_not_sent_again():
    hosts = {"a": prepared("vm1"), "b": prepared("vm2")}
    state = after(decided(hosts), hosts)
    started = dict(hosts["b"]["maintenance__info"], events=[dict(EVENT, status="Started")])
    hosts["b"]["maintenance__seen"] = started
    # the approving host is not back yet, or its IMDS still lists the event as Scheduled
    for seen in (UNREACHABLE, hosts["a"]["maintenance__info"]):
        hosts["a"]["maintenance__seen"] = seen
        ended = decided(hosts, state)
        (decision,) = ended["decisions"]
        assert (decision["approve"], decision["code"], ended["open"]) == (False, "started", {})
        assert problem(a=dict(recovered("vm1"), maintenance__decided=ended)) == ""


@pytest.mark.parametrize(
    "seen", [{}, {"skipped": True}, FAILED, UNREACHABLE, {"available": False, "reason": "no route"}], ids=str
)
def test_event_waits_for_a_host_that_is_lost_after_its_preparation(seen):
    hosts = {"a": prepared("vm1", seen=seen), "b": prepared("vm2")}
    state = decided(hosts, now=1000.0)
    (decision,) = state["decisions"]
    assert (decision["approve"], decision["code"]) == (False, "not_known") and state["open"] == {"ab-1": ["a", "b"]}
    assert decision["why_not"].startswith("VM1: it could not be read since it has prepared")
    back = decided({"a": prepared("vm1"), "b": prepared("vm2")}, state, now=1119.0)
    assert [each["by"] for each in back["decisions"] if each["approve"]] == ["a"] and back["lost"] == []
    state = decided(hosts, state, now=1120.0)
    assert state["open"] == {} and not any(each["approve"] for each in state["decisions"])
    assert problem(a=dict(recovered("vm1"), maintenance__decided=state)).startswith("the host could not be read")


def test_event_with_another_obstacle_does_not_wait_for_a_lost_host():
    event = dict(EVENT, resources=["vm1", "vm2", "elsewhere"])
    state = decided({"a": prepared("vm1", event, seen=UNREACHABLE), "b": prepared("vm2", event)})
    assert state["open"] == {} and state["lost"] == []


def test_host_that_has_restarted_prepares_again_once_before_the_approval():
    hosts = {"a": restarted("vm1"), "b": prepared("vm2")}
    state = decided(hosts)
    assert state["prepare_again"] == ["a"] and state["open"] == {"ab-1": ["a", "b"]}
    assert state["decisions"][0]["code"] == "restarted"
    again = {"at": AT, "boot": "boot 2", "types": ["Reboot"]}
    state_after = decided(dict(hosts, a=restarted("vm1", prepared=again)), state)
    assert [each["by"] for each in state_after["decisions"] if each["approve"]] == ["a"]
    assert state_after["prepare_again"] == []
    twice = decided(hosts, state)
    assert (twice["open"], twice["prepare_again"]) == ({}, []) and twice["decisions"][0]["code"] == "not_prepared"


def test_host_without_an_identity_of_boots_has_not_restarted():
    for before, now in (("", "boot 2"), ("boot 1", ""), ("", "")):
        host = prepared("vm1", prepared={"at": AT, "boot": before, "types": ["Reboot"]})
        host["maintenance__seen"] = dict(host["maintenance__seen"], boot=now)
        (decision,) = decisions(a=host, b=prepared("vm2"))
        assert decision["approve"]


@pytest.mark.parametrize("kinds", list(itertools.product(EVENT_TYPES, EVENT_TYPES)), ids=str)
def test_preparation_counts_only_for_events_that_are_not_more_severe(kinds):
    done, needed = kinds
    event = dict(EVENT, event_type=needed, resources=["vm1"])
    host = prepared("vm1", event, prepared={"at": AT, "boot": "boot 1", "types": [done]})
    (decision,) = decisions(a=host)
    assert decision["approve"] is counts_for(done, needed)
    row = report(a=dict(recovered("vm1", event), maintenance__prepared=host["maintenance__prepared"]))["a"]
    assert (row["prepared"], row["outcome"]) == (
        (AT, "completed") if counts_for(done, needed) else (None, "unprepared")
    )


@pytest.mark.parametrize(
    "planned, types, needed, counts",
    [
        (["Redeploy"], ["Freeze"], "Freeze", True),  # the event has become less severe, or another one is over
        (["Redeploy"], ["Freeze"], "Redeploy", False),
        (["Freeze"], ["Freeze", "Redeploy"], "Redeploy", False),  # ready hooks prepare for the most urgent event
        (["Redeploy"], ["Freeze", "Redeploy"], "Freeze", True),
        (["Freeze"], ["Redeploy"], "Redeploy", False),
    ],
)
def test_preparation_counts_for_types_that_the_plan_and_its_events_had(planned, types, needed, counts):
    event = dict(EVENT, event_type=needed, resources=["vm1"])
    done = {"at": AT, "boot": "boot 1", "types": types, "planned": planned}
    (decision,) = decisions(a=prepared("vm1", event, prepared=done))
    assert decision["approve"] is counts


def test_results_of_all_batches_count_and_the_newer_ones_of_an_event():
    def state(number, **results):
        return dict(no_attempts(), round=number, **results)

    lost = {"code": "failed", "text": "lost"}
    newer = state(2, withheld={"ab-1": {"code": "started", "text": "it has started"}})
    other = state(1, approved={"cd-2": {"at": AT, "code": "approved"}})
    for states in (
        [newer, state(1, refusals={"ab-1": lost}), other],
        [other, state(1, refusals={"ab-1": lost}), newer],
    ):
        results = last_results(states)
        assert results["withheld"] == newer["withheld"] and results["approved"] == other["approved"]
        assert results["refusals"] == {}


@pytest.mark.parametrize("given", [7, "approved", [7], [{}], [{"outcome": 7, "reason": ""}]])
def test_approval_with_an_invalid_result_has_failed(given):
    hosts = {"a": prepared("vm1"), "b": prepared("vm2")}
    state = after(decided(hosts), hosts, a={"approvals": given})
    assert state["open"] == {"ab-1": ["a", "b"]} and "examine the host" in state["refusals"]["ab-1"]["text"]
