# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""prepare, recover, sweep and approve_prepared of the execution module: what it adds to azure_events_steps."""

from __future__ import annotations

import sys

import pytest
from salt.exceptions import SaltInvocationError

from support.salt.azure import Azure
from support.salt.loaded import CountingMinion


def test_selection_of_the_beacon_counts_for_prepare(counting: CountingMinion, azure: Azure) -> None:
    counting.opts["beacons"] = {"azure_events": [{"types": ["Reboot"]}]}
    counting.reload()
    assert counting.prepare(azure.announce("vm1", kind="Freeze")) == "not_selected"
    assert counting.prepare(azure.announce("vm1")) == "prepared"


def test_sweep_recovers_from_ended_events_only(counting: CountingMinion, azure: Azure) -> None:
    event_id = azure.announce("vm1")
    counting.prepare(event_id)
    assert [result["outcome"] for result in counting.call("sweep")["results"]] == ["still_listed"]
    azure.cancel(event_id)
    assert [result["outcome"] for result in counting.call("sweep")["results"]] == ["recovered"]
    assert counting.call("sweep") == {"version": 1, "results": []}


@pytest.mark.parametrize("outcome", ["prepared", "not_listed"])
def test_retcode_follows_the_outcome(counting: CountingMinion, azure: Azure, outcome: str) -> None:
    event_id = azure.announce("vm1") if outcome == "prepared" else "x"
    assert counting.prepare(event_id) == outcome
    assert counting.functions.pack["__context__"].get("retcode", 0) == (0 if outcome == "prepared" else 1)


def test_unknown_key_is_a_failure_with_a_suggestion(counting: CountingMinion) -> None:
    counting.configure(prepair=[])
    for function in ("prepare", "recover"):
        answer = counting.call(function, "x")
        assert answer["outcome"] == "failed" and "did you mean prepare?" in answer["reason"]
    status = counting.call("status")
    assert (status["available"], "did you mean prepare?" in status["reason"]) == (False, True)


def test_prepared_event_is_approved_once(counting: CountingMinion, azure: Azure) -> None:
    event_id = azure.announce("vm1", "vm2")
    counting.prepare(event_id)
    assert counting.approve(event_id.lower(), "VM1", "vm2", "vm9") == "approved"
    assert counting.approve(event_id, "vm1", "vm2") == "already_approved"
    assert azure.approvals(event_id) == ["vm1"]


def test_wrong_arguments_are_refused(counting: CountingMinion) -> None:
    for arguments in ((None, ["vm1"]), ("A", None), ("A", [7]), ("A", {"vm1": True}), ("", ["vm1"])):
        with pytest.raises(SaltInvocationError):
            counting.call("approve_prepared", *arguments)


@pytest.mark.skipif(sys.platform != "win32", reason="ready hooks are refused on Windows only")
@pytest.mark.parametrize("key", ["ready_hooks", "recover"])
def test_ready_hook_is_refused_on_windows(counting: CountingMinion, azure: Azure, key: str) -> None:
    counting.configure(**{key: [{"use": "haproxy", "server": "web/web1"}]})
    answer = counting.call("prepare", azure.announce("vm1"))
    assert (answer["outcome"], answer["steps"], counting.ran) == ("failed", [], [])
    assert "'haproxy' is a ready hook, which runs on Linux only; replace it" in answer["reason"]
    assert counting.call("check")["outcome"] == "failed"
    assert [one["event_type"] for one in counting.call("list")["events"]] == ["Reboot"]
