# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""prepare, recover and approve_prepared: functions, states and SLS files.

They add arguments, changes and return codes to azure_events_steps.
"""

from __future__ import annotations

import sys
from typing import Any

import pytest
from salt.exceptions import SaltInvocationError
from salt.loader import minion_mods, utils

from support.salt.azure import Azure
from support.salt.loaded import CountingMinion
from support.salt.steps import SUCCEED


def test_selection_of_the_beacon_counts_for_prepare(counting: CountingMinion, azure: Azure) -> None:
    counting.opts["beacons"] = {"azure_events": [{"types": ["Reboot"]}]}
    counting.reload()
    assert counting.prepare(azure.announce("vm1", kind="Freeze")) == "not_selected"
    assert counting.prepare(azure.announce("vm1")) == "prepared"


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


def apply(counting: CountingMinion, sls: str, event_id: str | None = None, **words: Any) -> dict[str, Any]:
    """Return its only state."""
    pillar = {"azure_events_event": event_id} if event_id else {}
    counting.use_states()
    opts = dict(counting.opts, pillar=pillar)
    ran = minion_mods(opts, context={}, utils=utils(opts))["state.sls"]("azure_events." + sls, pillar=pillar, **words)
    assert isinstance(ran, dict), ran
    (state,) = ran.values()
    return dict(state)


def test_states_prepare_and_recover(counting: CountingMinion, azure: Azure) -> None:
    event_id = azure.announce("vm1")
    ret = counting.state("prepared", event_id)
    assert ret["result"] is True and ret["changes"]["prepare"] == {"old": "not prepared", "new": "prepared"}
    ret = counting.state("prepared", event_id)
    assert (ret["result"], ret["changes"]) == (True, {}) and ret["comment"].startswith("already_prepared: ")
    ret = counting.state("recovered", event_id)
    assert ret["result"] is False and event_id in ret["comment"]
    azure.cancel(event_id)
    ret = counting.state("recovered", event_id)
    assert ret["result"] is True and ret["changes"]["recover"] == {"old": "prepared", "new": "recovered"}
    assert counting.state("recovered", event_id)["changes"] == {}
    assert counting.ran == ["prepare " + event_id, "recover " + event_id]


def test_states_in_test_mode_show_the_steps(counting: CountingMinion, azure: Azure) -> None:
    event_id = azure.announce("vm1")
    ret = counting.state("prepared", event_id, test=True)
    assert ret["result"] is None and list(ret["changes"]["steps"].values()) == ["would_run"]
    assert counting.ran == []
    counting.prepare(event_id)
    assert counting.state("prepared", event_id, test=True)["result"] is True
    azure.cancel(event_id)
    assert counting.state("recovered", event_id, test=True)["result"] is None


def test_failed_state_shows_the_reason_and_the_steps(counting: CountingMinion, azure: Azure) -> None:
    counting.configure(prepare=[SUCCEED, "exit 7"])
    ret = counting.state("prepared", azure.announce("vm1"))
    assert ret["result"] is False and "exit code 7" in ret["comment"]
    assert list(ret["changes"]["steps"].values()) == ["done", "failed"]
    assert counting.state("prepared", "forged")["comment"].startswith("not_listed: ")
    assert counting.state("prepared", "x", by_hand="yes")["result"] is False


def test_sls_files_prepare_and_recover_for_an_event(counting: CountingMinion, azure: Azure) -> None:
    event_id = azure.announce("vm1")
    assert apply(counting, "prepare", event_id)["result"] is True
    azure.cancel(event_id)
    assert apply(counting, "recover", event_id)["result"] is True
    assert counting.call("sweep") == {"version": 1, "results": []}
    assert counting.ran == ["prepare " + event_id, "recover " + event_id]


@pytest.mark.parametrize("hostile", ["a'b\"c: {{ 7*7 }}", "x\n- name: y", "\x7f\ufffe" + "y" * 2000])
def test_sls_files_take_any_id(counting: CountingMinion, hostile: str) -> None:
    ret = apply(counting, "prepare", hostile)
    assert ret["result"] is False and ret["comment"].startswith("not_listed: ") and ret["name"] == hostile


def test_sls_files_without_an_event_prepare_by_hand(counting: CountingMinion) -> None:
    assert apply(counting, "prepare")["result"] is True
    assert [one["event_id"] for one in counting.call("status")["records"]] == [""]
    assert apply(counting, "recover")["result"] is True
    assert counting.ran == ["prepare", "recover"]


@pytest.mark.skipif(sys.platform == "win32", reason="ready hooks run on Linux only")
def test_check_of_an_invalid_configuration_fails(counting: CountingMinion) -> None:
    counting.configure(ready_hooks=[{"use": "haproxi"}])
    assert "did you mean haproxy" in counting.call("check")["reason"]
