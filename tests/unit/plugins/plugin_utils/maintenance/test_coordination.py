# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decisions, reads and reports of a run with hook runners, for each state of the hosts."""

from __future__ import annotations

import pytest
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.identity import vm_key
from ansible_collections.azure_imds.scheduled_events.plugins.plugin_utils._maintenance.approval_attempts import (
    with_approvals,
)
from ansible_collections.azure_imds.scheduled_events.plugins.plugin_utils._maintenance.coordination import (
    DECISION_ROUND,
    LONGEST_ROUND,
    Limits,
    first_state,
    next_state,
)
from ansible_collections.azure_imds.scheduled_events.plugins.plugin_utils._maintenance.coordination_report import (
    coordination_problems,
    coordination_rows,
)
from ansible_collections.azure_imds.scheduled_events.plugins.plugin_utils._maintenance.hosts import hosts_of

LIMITS = Limits(patience=600, within=1800)
HOSTS = ("h1", "h2")
AT, NOON = "2026-11-21T12:00:00.000000Z", 1795262400.0


def event_of(**changes):
    usual = {
        "event_id": "Ab-1",
        "key": "ab-1",
        "event_type": "Reboot",
        "status": "Scheduled",
        "resources": ["vm1", "VM2"],
        "not_before": "2026-11-21T12:15:00Z",
        "affects_self": True,
        "prepared_state": "ok",
        "seconds_left": 840,
        "waiting": None,
        "failed_hooks": [],
        "outcome": None,
        "prepared": "2026-11-21T12:00:00.000Z",
        "approved": None,
        "started": None,
        "over": None,
        "recovered": None,
    }
    event = dict(usual, **changes)
    return {"listed": True, "named": list(map(vm_key, event["resources"])), "readable": True, **event}


def result_of(vm, *events, **changes):
    usual = {
        "available": True,
        "state": "running",
        "reason": "",
        "resource_name": vm,
        "leader": "external",
        "dry_run": False,
        "paused": None,
        "imds_ok": True,
        "confirmed": True,
        "records_ok": True,
        "maintenance": {"id": "1", "phase": "prepared", "since": AT, "not_recovered": []} if events else None,
        "events": list(events),
        "history": [],
    }
    return dict(usual, **changes)


def recovering(*failed):
    return {"id": "1", "phase": "recovering", "since": AT, "not_recovered": list(failed)}


def after(*results, limits=LIMITS, now=0.0):
    """Return the state after the first round, in which these are the results of h1, h2, ..."""
    names = [f"h{number}" for number in range(1, len(results) + 1)]
    return next_state(first_state(names, 0.0), dict(zip(names, results)), now, limits)


def withheld(state):
    (reason,) = state["withheld"].values()
    assert reason["code"]
    return reason["text"]


def approver(by, **result):
    """Return the variables of the host that has run the tasks of the approval."""
    usual = {"item": {"event_id": "Ab-1"}, "approvals": [{"outcome": "approved", "reason": "selected"}]}
    return {by: {"maintenance__approvals": {"results": [dict(usual, **result)]}}}


def test_event_is_approved_by_the_first_vm_when_all_have_prepared():
    state = after(result_of("vm1", event_of()), result_of("vm2", event_of()))
    (decision,) = state["decisions"]
    assert (decision["approve"], decision["by"], decision["event_id"]) == (True, "h1", "Ab-1")
    assert not state["over"]


@pytest.mark.parametrize(
    ("second", "reason"),
    [
        (result_of("vm2", event_of(prepared_state="running")), "has not prepared yet"),
        (result_of("vm2", event_of(prepared_state="none", waiting="the policy holds")), "the policy holds"),
        (
            result_of("vm2", event_of(prepared_state="failed", failed_hooks=["prepare/10-a failed"])),
            "prepare/10-a failed",
        ),
        (result_of("vm2"), "does not list this event for itself"),
        (result_of("vm2", event_of(listed=False, named=[])), "its last document does not list this event for it"),
        (result_of("vm2", event_of(named=["vm1"])), "its last document does not list this event for it"),
        (result_of("vm2", event_of(), confirmed=False), "one document was read"),
        (result_of("vm2", event_of(resources=["vm1", "vm2", "vm3"])), "no host of this play is known to be this VM"),
        (result_of("vm2", event_of(), paused={"by": "anna", "reason": "work"}), "is paused by anna: work"),
        (result_of("vm2", event_of(), dry_run=True), "dry_run"),
        (result_of("vm2", event_of(), imds_ok=False), "no answer of IMDS"),
        (result_of("vm2", event_of(), records_ok=False), "records"),
        (result_of(None, event_of()), "no host of this play is known to be this VM"),
        ({"available": False, "state": "not_running", "reason": "it does not run"}, "it does not run"),
        ({"unreachable": True, "msg": "no route"}, "no route"),
        ({}, "was not read"),
    ],
)
def test_event_is_not_approved_while_a_vm_prevents_it(second, reason):
    state = after(result_of("vm1", event_of()), second)
    assert state["decisions"] == [] and reason in withheld(state)
    assert withheld(state).startswith(("VM2: ", "vm3: "))


@pytest.mark.parametrize(
    "forged",
    [
        {"events": [7]},
        {"events": [dict(event_of(), resources=[7])]},
        {"events": [event_of(event_id="B")]},
        {"events": [{"event_id": "Ab-1", "key": "ab-1"}]},
        {"history": 7},
        {"maintenance": 7},
        {"maintenance": {"phase": "recovering"}},
        {"paused": 7},
        {"resource_name": 7},
        {"leader": None},
    ],
)
def test_host_that_returns_anything_else_counts_as_not_read(forged):
    state = after(result_of("vm1", event_of(resources=["vm1", "vm3"])), dict(result_of("vm2", event_of()), **forged))
    assert [known["available"] for known in state["hosts"].values()] == [True, False]
    assert "examine the host" in state["hosts"]["h2"]["reason"] and state["events"]["h2"] == {}


def test_event_whose_vms_one_hook_runner_cannot_read_is_not_approved():
    state = after(result_of("vm1", event_of()), result_of("vm2", event_of(readable=False)))
    assert state["decisions"] == [] and state["withheld"]["ab-1"]["code"] == "unreadable"


@pytest.mark.parametrize("order", [("h1", "h2", "h3"), ("h3", "h2", "h1")])
def test_arm_approves_no_event_of_a_vm_that_another_host_claims(order):
    event = event_of(resources=["vm2", "vm3"])
    # h1 is vm1; the host of vm2 cannot be read
    results = {
        "h1": result_of("vm2", event),
        "h2": {"unreachable": True, "msg": "no route"},
        "h3": result_of("vm3", event),
    }
    state = first_state(order, 0.0, {"h1": "vm1", "h2": "vm2", "h3": "vm3"})
    state = next_state(state, {name: results[name] for name in order}, 0.0, LIMITS)
    assert state["decisions"] == [] and withheld(state) == "vm2: no route"


@pytest.mark.parametrize(
    ("vm", "reason"), [("vm9", "no host of this play is known"), ("vm3", "does not list this event for itself")]
)
def test_vm_that_only_the_caller_names_is_not_released(vm, reason):
    results = {"h1": result_of("vm1", event_of()), "h2": result_of("vm2", event_of()), "h3": result_of("vm3")}
    state = first_state(list(results), 0.0, of_caller={"ab-1": [event_of(resources=["vm2", vm])]})
    state = next_state(state, results, 0.0, LIMITS)
    assert state["decisions"] == [] and withheld(state).startswith(f"{vm}: ") and reason in withheld(state)
    # the hook runner of a VM that is a host may list the event soon
    assert ("h3" in state["read"]) == (vm == "vm3")


def test_event_that_has_started_on_one_host_is_not_approved():
    started = event_of(status="Started")
    state = after(result_of("vm1", event_of()), result_of("vm2", started))
    assert state["decisions"] == [] and not state["over"]


@pytest.mark.parametrize("status", ["Paused", None])
def test_event_with_an_unknown_status_is_not_approved(status):
    state = after(*(result_of(vm, event_of(status=status)) for vm in ("vm1", "vm2")))
    assert state["decisions"] == [] and f"status {status or ''!r} is unknown" in withheld(state)
    assert all(each["wait_for"] != "prepared" for each in state["read"].values())


def test_host_that_never_lists_the_event_of_others_does_not_keep_the_run_from_its_end():
    state = after(result_of("vm1", event_of()), result_of("vm2"))
    assert set(state["read"]) == {"h1", "h2"}
    assert next_state(state, {"h1": result_of("vm1"), "h2": result_of("vm2")}, 15.0, LIMITS)["over"]


def test_event_of_one_vm_is_left_to_its_hook_runner():
    state = after(result_of("vm1", event_of(resources=["vm1"])), result_of("vm2"))
    assert state["decisions"] == [] and "the policy of its hook runner decides" in withheld(state)


@pytest.mark.parametrize("events", [[], [event_of(affects_self=False, prepared_state="none")]])
def test_event_that_is_over_on_one_host_or_that_its_vm_has_left_is_not_approved(events):
    lists = {name: result_of(vm, event_of()) for name, vm in (("h1", "vm1"), ("h2", "vm2"))}
    state = next_state(first_state(HOSTS, 0.0), dict(lists, h2=result_of("vm2")), 0.0, LIMITS)
    state = next_state(state, lists, 1.0, LIMITS)
    over = result_of("vm2", *events, history=[event_of(over=AT, recovered=AT)], maintenance=None)
    state = next_state(state, dict(lists, h2=over), 2.0, LIMITS)
    assert state["decisions"] == [] and not state["over"] and "h2" not in coordination_problems(state)


def test_event_that_is_not_due_or_of_another_type_ends_the_run():
    for limits in (Limits(600, 60), Limits(600, 1800, frozenset(["freeze"]))):
        assert after(result_of("vm1", event_of()), result_of("vm2", event_of()), limits=limits)["over"]
    assert not after(result_of("vm1", event_of()), limits=Limits(600, 1800, frozenset(["reboot"])))["over"]


def test_advice_is_coordinated_only_if_its_type_is_named():
    advice = event_of(event_type="SpotRebalanceRecommendation")
    assert after(result_of("vm1", advice), result_of("vm2", advice))["over"]
    limits = Limits(600, 1800, frozenset(["SpotRebalanceRecommendation"]))
    assert not after(result_of("vm1", advice), result_of("vm2", advice), limits=limits)["over"]


def test_round_reads_only_hosts_that_prepare_while_there_are_any():
    state = after(result_of("vm1", event_of()), result_of("vm2", event_of(prepared_state="running")), now=1.0)
    assert {name: each["wait_for"] for name, each in state["read"].items()} == {"h2": "prepared"}
    assert state["read"]["h2"]["until"] == 1.0 + DECISION_ROUND
    # after a wait all hosts are read again before the approval
    state = next_state(state, {"h2": result_of("vm2", event_of())}, 9.0, LIMITS)
    assert state["decisions"] == [] and {each["wait_for"] for each in state["read"].values()} == {"nothing"}
    assert set(state["read"]) == {"h1", "h2"} and state["pause"] == 0
    assert next_state(state, {"h1": result_of("vm1", event_of()), "h2": result_of("vm2", event_of())}, 9.0, LIMITS)[
        "decisions"
    ]


def test_preparation_that_is_void_at_the_second_read_prevents_the_approval():
    state = after(result_of("vm1", event_of()), result_of("vm2", event_of(prepared_state="running")))
    state = next_state(state, {"h2": result_of("vm2", event_of())}, 9.0, LIMITS)
    void = result_of("vm1", event_of(prepared_state="running"))
    assert next_state(state, {"h1": void, "h2": result_of("vm2", event_of())}, 9.0, LIMITS)["decisions"] == []


def test_host_that_is_lost_at_the_second_read_prevents_the_approval():
    state = after(result_of("vm1", event_of()), result_of("vm2", event_of(prepared_state="running")))
    state = next_state(state, {"h2": result_of("vm2", event_of())}, 9.0, LIMITS)
    lost = {"unreachable": True, "msg": "no route"}
    state = next_state(state, {"h1": lost, "h2": result_of("vm2", event_of())}, 9.0, LIMITS)
    assert state["decisions"] == [] and withheld(state) == "vm1: no route"


@pytest.mark.parametrize("unknown", [{"confirmed": False}, {"resource_name": None}])
def test_daemons_that_have_just_restarted_do_not_end_the_run(unknown):
    state = after(result_of("vm1", event_of()), result_of("vm2", event_of()))
    for now in (2.0, 4.0, 6.0):
        results = {"h1": result_of("vm1", **unknown), "h2": result_of("vm2", **unknown)}
        state = next_state(state, results, now, LIMITS)
        assert not state["over"] and state["decisions"] == [] and withheld(state)


def test_approval_is_sent_once_and_the_hosts_are_followed_to_their_recovery():
    state = after(result_of("vm1", event_of()), result_of("vm2", event_of()))
    state = with_approvals(state, hosts_of(["h1"], approver("h1")), NOON)
    assert state["approved"] == {"ab-1": {"at": AT, "code": "approved"}} and state["decisions"] == []
    for now in (1.0, 2.0):
        results = {"h1": result_of("vm1", event_of()), "h2": result_of("vm2", event_of())}
        state = next_state(state, results, now, LIMITS)
        assert state["decisions"] == [] and {each["wait_for"] for each in state["read"].values()} == {"recovered"}
    assert state["round_ends"] == 2.0 + LONGEST_ROUND or state["pause"] > 0
    over = event_of(started="S", over="O", listed=False, named=[])
    for maintenance, recovered in ((recovering(), None), (None, "R")):
        assert not state["over"]
        record = dict(over, recovered=recovered)
        results = {
            name: result_of(vm, history=[record], maintenance=maintenance)
            for name, vm in (("h1", "vm1"), ("h2", "vm2"))
        }
        state = next_state(state, results, 30.0, LIMITS)
    assert state["over"] and coordination_problems(state) == {}
    for row in coordination_rows(state):
        assert (row["approved"], row["started"], row["over"], row["recovered"]) == (AT, "S", "O", "R")
        assert row["prepared"] and row["why_not"] == "" and row["not_before"]
        assert (row["approval"], row["outcome"]) == ("approved", "completed")


def test_after_a_failed_approval_the_next_vm_approves():
    state = after(result_of("vm1", event_of()), result_of("vm2", event_of()))
    failed = approver("h1", failed=True, msg="IMDS did not answer")
    state = with_approvals(state, hosts_of(["h1"], failed), NOON)
    assert "not approved: the approval failed: IMDS did not answer" in coordination_problems(state)["h2"]
    results = {"h1": result_of("vm1", event_of()), "h2": result_of("vm2", event_of())}
    for now in (1.0, 20.0):
        state = next_state(state, results, now, LIMITS)
    assert [decision["by"] for decision in state["decisions"]] == ["h2"]
    state = with_approvals(state, hosts_of(["h2"], approver("h2")), NOON)
    assert state["approved"] and state["refusals"] == {}


def test_approver_that_is_lost_counts_as_a_failed_approval():
    state = after(result_of("vm1", event_of()), result_of("vm2", event_of()))
    state = with_approvals(state, hosts_of(["h1"], {"h1": {}}), NOON)
    assert "h1 was lost" in state["refusals"]["ab-1"]["text"] and state["approved"] == {}


def test_second_event_of_the_same_hosts_is_approved_by_itself():
    second = event_of(event_id="Cd-2", key="cd-2")
    state = after(result_of("vm1", event_of()), result_of("vm2", event_of()))
    state = with_approvals(state, hosts_of(["h1"], approver("h1")), NOON)
    results = {name: result_of(vm, event_of(), second) for name, vm in (("h1", "vm1"), ("h2", "vm2"))}
    state = next_state(state, results, 1.0, LIMITS)
    state = next_state(state, results, 2.0, LIMITS)
    assert [decision["key"] for decision in state["decisions"]] == ["cd-2"]


def test_patience_ends_the_run_and_is_named_for_each_host():
    state = after(result_of("vm1", event_of()), result_of("vm2"), now=600.0)
    assert state["over"] and "the event is not over" in coordination_problems(state)["h1"]


def test_check_mode_ends_after_the_first_decision():
    state = after(result_of("vm1", event_of()), result_of("vm2", event_of()), limits=LIMITS._replace(check_mode=True))
    assert state["over"] and len(state["decisions"]) == 1 and coordination_problems(state) == {}


def test_hosts_that_return_at_once_cause_a_pause_and_few_rounds():
    lost = {"unreachable": True, "msg": "no route"}
    state, now, rounds = after(result_of("vm1", event_of()), lost), 0.0, 0
    while not state["over"]:
        assert rounds < 100
        now += state["pause"] + 0.5
        state, rounds = next_state(state, {"h1": result_of("vm1", event_of()), "h2": lost}, now, LIMITS), rounds + 1
    assert now >= 600 and coordination_problems(state)["h2"] == "no route"


def test_long_patience_has_long_rounds():
    state = after(result_of("vm1", event_of(prepared_state="running")), result_of("vm2"), limits=Limits(36000, 1800))
    assert state["read"]["h1"]["until"] == 150


@pytest.mark.parametrize(
    ("ended", "outcome"),
    [({}, "unknown"), ({"started": "2026-11-21T12:20:00Z"}, "completed"), ({"outcome": "completed"}, "completed")],
)
def test_event_that_moves_and_ends_is_reported_as_by_the_role(ended, outcome):
    lists = [result_of(vm, event_of()) for vm in ("vm1", "vm2")]
    moved = event_of(not_before="2026-11-21T12:30:00Z")
    closed = {**moved, "over": "2026-11-21T12:25:00Z", "recovered": "R", **ended}
    state = after(*lists)
    for changes in ({"events": [moved]}, {"history": [closed]}):
        results = {name: result_of(vm, **changes) for name, vm in (("h1", "vm1"), ("h2", "vm2"))}
        state = next_state(state, results, 1.0, LIMITS)
    for row in coordination_rows(state):
        assert (row["not_before"], row["moved_to"]) == ("2026-11-21T12:15:00Z", "2026-11-21T12:30:00Z")
        assert row["outcome"] == outcome


def test_leader_that_approves_by_itself_is_a_problem():
    state = after(result_of("vm1", event_of(), leader="first"), result_of("vm2", event_of(), leader="self-only"))
    problems = coordination_problems(state)
    assert "set leader: external" in problems["h1"] and "leader" not in problems["h2"]


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"maintenance": recovering("10-a")}, "not recovered: recover/10-a"),
        ({"maintenance": recovering()}, "not recovered: the recover hooks have not ended"),
        ({"history": [event_of(over="O", given_up_by="anna")]}, "not recovered: anna gave the recovery up"),
        ({}, "its hook runner has no record of the recovery"),
    ],
)
def test_host_that_has_not_recovered_is_a_problem(changes, problem):
    state = after(result_of("vm1", event_of()), result_of("vm2"))
    state = next_state(state, {"h1": result_of("vm1", **changes), "h2": result_of("vm2")}, 1.0, LIMITS)
    assert coordination_problems(state) == {"h1": problem}
    assert state["over"] is ("maintenance" not in changes)


def test_host_that_goes_on_with_an_event_of_a_later_run_is_no_problem():
    later = event_of(event_id="Cd-2", key="cd-2", seconds_left=3600)
    state = after(result_of("vm1", event_of(), later), result_of("vm2"))
    state = next_state(state, {"h1": result_of("vm1", later, history=[event_of(over="O")])}, 1.0, LIMITS)
    assert state["over"] and coordination_problems(state) == {}
