# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""prepare and recover of the execution module: which steps run, how often, and refusals."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from azure_scheduled_events.boot import boot_id
from support.salt.azure import Azure
from support.salt.loaded import CountingMinion, Minion, failing
from support.salt.scripted import ScriptedImds


def test_prepare_and_recover_run_once(counting: CountingMinion, azure: Azure) -> None:
    event_id = azure.announce("vm1")
    assert counting.prepare(event_id) == "prepared"
    assert counting.prepare(event_id.lower()) == "already_prepared"
    assert counting.recover(event_id) == "still_listed"
    azure.cancel(event_id)
    assert counting.recover(event_id) == "recovered"
    assert counting.recover(event_id) == "not_prepared"
    assert counting.ran == ["prepare " + event_id, "recover " + event_id]
    assert not counting.record.exists()


def test_test_mode_runs_nothing_and_returns_the_steps(counting: CountingMinion, azure: Azure) -> None:
    event_id = azure.announce("vm1")
    planned = counting.call("prepare", event_id, test=True)
    assert (planned["outcome"], [step["outcome"] for step in planned["steps"]]) == ("would_prepare", ["would_run"])
    counting.prepare(event_id)
    azure.cancel(event_id)
    planned = counting.call("recover", event_id, test=True)
    assert (planned["outcome"], [step["outcome"] for step in planned["steps"]]) == ("would_recover", ["would_run"])
    assert len(counting.ran) == 1


def test_prepare_refuses_an_event_that_its_own_imds_does_not_list(counting: CountingMinion, azure: Azure) -> None:
    assert counting.prepare("00000000-forged") == "not_listed"
    assert counting.prepare(azure.announce("vm2")) == "not_affected"
    started = azure.announce("vm1")
    azure.start(started)
    assert counting.prepare(started) == "started"
    with failing(azure, "empty"):
        assert counting.prepare(started) == "unavailable"
    assert counting.ran == [] and not counting.record.exists()


@pytest.mark.parametrize(
    "section",
    [{"types": ["Reboot"]}, {"sources": "User"}, {"statuses": ["Started"]}, {"minimum_notice": "2d"}],
    ids=lambda section: next(iter(section)),
)
def test_prepare_obeys_its_own_selection(counting: CountingMinion, azure: Azure, section: dict[str, Any]) -> None:
    counting.configure(**section)
    event_id = azure.announce("vm1", kind="Freeze")
    assert counting.prepare(event_id) == "not_selected"
    (event,) = counting.call("status")["events"]
    assert (event["selected"], event["not_selected_because"]) == (False, next(iter(section)))


def test_selection_of_the_beacon_counts_for_prepare(counting: CountingMinion, azure: Azure) -> None:
    counting.opts["beacons"] = {"azure_events": [{"types": ["Reboot"]}]}
    counting.reload()
    assert counting.prepare(azure.announce("vm1", kind="Freeze")) == "not_selected"
    assert counting.prepare(azure.announce("vm1")) == "prepared"


def test_second_event_in_the_same_boot_runs_nothing_and_both_have_to_end(
    counting: CountingMinion, azure: Azure
) -> None:
    first, second = azure.announce("vm1"), azure.announce("vm1", kind="Freeze")
    assert [counting.prepare(first), counting.prepare(second)] == ["prepared", "prepared"]
    azure.cancel(first)
    answer = counting.call("recover", first)
    assert (answer["outcome"], answer["changed"]) == ("still_listed", True) and second in answer["reason"]
    assert {one["event_id"]: one["over"] for one in counting.call("status")["records"]} == {first: True, second: False}
    azure.cancel(second)
    assert counting.recover(second) == "recovered"
    assert counting.ran == ["prepare " + first, "recover " + second]


def test_preparation_by_hand_is_undone_by_hand_only(counting: CountingMinion, azure: Azure) -> None:
    assert counting.prepare() == "prepared"
    assert counting.recover("00000000-forged") == "not_prepared"
    assert counting.call("sweep")["results"] == []
    event_id = azure.announce("vm1")
    assert counting.prepare(event_id) == "prepared"
    azure.cancel(event_id)
    assert counting.recover(event_id) == "recovered"
    assert counting.ran == ["prepare"]
    assert counting.recover() == "recovered"
    assert counting.ran == ["prepare", "recover"]


def test_sweep_recovers_from_ended_events_only(counting: CountingMinion, azure: Azure) -> None:
    event_id = azure.announce("vm1")
    counting.prepare(event_id)
    assert [result["outcome"] for result in counting.call("sweep")["results"]] == ["still_listed"]
    azure.cancel(event_id)
    assert [result["outcome"] for result in counting.call("sweep")["results"]] == ["recovered"]
    assert counting.call("sweep") == {"version": 1, "results": []}


def test_recover_needs_two_good_documents(tmp_path: Path, scripted: ScriptedImds) -> None:
    minion = CountingMinion(tmp_path, scripted.endpoint)
    scripted.events = [scripted.event("A", "vm1")]
    assert minion.prepare("A") == "prepared"
    scripted.next = [[], [scripted.event("A", "vm1")]]
    assert minion.recover("A") == "still_listed"
    scripted.next = [[], []]
    assert minion.recover("A") == "recovered"


def test_preparation_is_void_after_a_reboot(counting: CountingMinion, azure: Azure) -> None:
    event_id = azure.announce("vm1")
    counting.prepare(event_id)
    text = counting.record.read_text()
    assert boot_id() in text
    counting.record.write_text(text.replace(boot_id(), "earlier"))
    assert counting.approve(event_id, "vm1") == "not_prepared"
    assert counting.prepare(event_id) == "prepared"
    assert counting.ran == 2 * ["prepare " + event_id]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no mode bits")
def test_record_and_its_folder_are_private(counting: CountingMinion, azure: Azure) -> None:
    counting.record.parent.mkdir(parents=True, mode=0o755)
    counting.prepare(azure.announce("vm1"))
    assert counting.record.parent.stat().st_mode & 0o077 == 0
    assert {path.name: path.stat().st_mode & 0o777 for path in counting.record.parent.iterdir()} == {
        "prepared.json": 0o600,
        "preparation.lock": 0o600,
    }


def test_damaged_record_is_quarantined_and_counts_as_by_hand(counting: CountingMinion, azure: Azure) -> None:
    event_id = azure.announce("vm1")
    counting.prepare(event_id)
    counting.record.write_text("{")
    (found,) = counting.call("status")["records"]
    assert (found["event_id"], found["state"]) == ("", "prepare_failed")
    assert counting.prepare(event_id) == "prepared"
    azure.cancel(event_id)
    assert counting.recover(event_id) == "recovered"
    assert len(counting.ran) == 2
    assert counting.recover() == "recovered"
    assert counting.record.with_name("prepared.json.damaged").read_text() == "{"


def test_without_steps_nothing_is_prepared_and_an_empty_list_is_enough(minion: Minion, azure: Azure) -> None:
    event_id = azure.announce("vm1")
    assert minion.call("prepare", event_id)["outcome"] == "no_steps"
    minion.opts["azure_events"]["prepare"] = []
    minion.reload()
    assert minion.call("prepare", event_id)["outcome"] == "prepared"
    azure.cancel(event_id)
    assert minion.call("recover", event_id)["outcome"] == "no_steps"


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


def test_status_of_a_minion_without_imds(tmp_path: Path) -> None:
    status = Minion(tmp_path, "http://127.0.0.1:9").call("status")
    assert (status["available"], status["events"], status["records"], status["working"]) == (False, [], [], None)
    assert "no connection" in status["reason"] and not os.listdir(tmp_path)
