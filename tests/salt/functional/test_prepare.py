# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""prepare and recover of the execution module: what runs, how often, and what the minion refuses."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from support.salt.azure import Azure
from support.salt.loaded import Counted, Minion, ill
from support.salt.scripted import Scripted


def test_prepare_and_recover_run_once(counted: Counted, azure: Azure) -> None:
    event_id = azure.announce("vm1")
    assert counted.prepare(event_id) == "prepared"
    assert counted.prepare(event_id.lower()) == "already_prepared"
    assert counted.recover(event_id) == "still_listed"
    azure.cancel(event_id)
    assert counted.recover(event_id) == "recovered"
    assert counted.recover(event_id) == "not_prepared"
    assert counted.ran == ["prepare " + event_id, "recover " + event_id]
    assert not counted.record.exists()


def test_test_mode_runs_nothing_and_says_what_would_run(counted: Counted, azure: Azure) -> None:
    event_id = azure.announce("vm1")
    planned = counted.call("prepare", event_id, test=True)
    assert (planned["outcome"], [step["outcome"] for step in planned["steps"]]) == ("would_prepare", ["would_run"])
    counted.prepare(event_id)
    azure.cancel(event_id)
    planned = counted.call("recover", event_id, test=True)
    assert (planned["outcome"], [step["outcome"] for step in planned["steps"]]) == ("would_recover", ["would_run"])
    assert len(counted.ran) == 1


def test_prepare_refuses_what_its_own_imds_does_not_list_for_it(counted: Counted, azure: Azure) -> None:
    assert counted.prepare("00000000-forged") == "not_listed"
    assert counted.prepare(azure.announce("vm2")) == "not_affected"
    started = azure.announce("vm1")
    azure.start(started)
    assert counted.prepare(started) == "started"
    with ill(azure, "empty"):
        assert counted.prepare(started) == "unavailable"
    assert counted.ran == [] and not counted.record.exists()


@pytest.mark.parametrize(
    "section",
    [{"types": ["Reboot"]}, {"sources": "User"}, {"statuses": ["Started"]}, {"minimum_notice": "2d"}],
    ids=lambda section: next(iter(section)),
)
def test_prepare_obeys_its_own_selection(counted: Counted, azure: Azure, section: dict[str, Any]) -> None:
    counted.configure(**section)
    event_id = azure.announce("vm1", kind="Freeze")
    assert counted.prepare(event_id) == "not_selected"
    (event,) = counted.call("status")["events"]
    assert (event["selected"], event["not_selected_because"]) == (False, next(iter(section)))


def test_selection_of_the_beacon_counts_for_prepare(counted: Counted, azure: Azure) -> None:
    counted.opts["beacons"] = {"azure_events": [{"types": ["Reboot"]}]}
    counted.reload()
    assert counted.prepare(azure.announce("vm1", kind="Freeze")) == "not_selected"
    assert counted.prepare(azure.announce("vm1")) == "prepared"


def test_second_event_in_the_same_boot_runs_nothing_and_both_have_to_end(counted: Counted, azure: Azure) -> None:
    first, second = azure.announce("vm1"), azure.announce("vm1", kind="Freeze")
    assert [counted.prepare(first), counted.prepare(second)] == ["prepared", "prepared"]
    azure.cancel(first)
    answer = counted.call("recover", first)
    assert (answer["outcome"], answer["changed"]) == ("still_listed", True) and second in answer["reason"]
    assert {one["event_id"]: one["over"] for one in counted.call("status")["records"]} == {first: True, second: False}
    azure.cancel(second)
    assert counted.recover(second) == "recovered"
    assert counted.ran == ["prepare " + first, "recover " + second]


def test_by_hand_is_undone_by_hand_alone(counted: Counted, azure: Azure) -> None:
    assert counted.prepare() == "prepared"
    assert counted.recover("00000000-forged") == "not_prepared"
    assert counted.call("sweep")["results"] == []
    event_id = azure.announce("vm1")
    assert counted.prepare(event_id) == "prepared"
    azure.cancel(event_id)
    assert counted.recover(event_id) == "recovered"
    assert counted.ran == ["prepare"]
    assert counted.recover() == "recovered"
    assert counted.ran == ["prepare", "recover"]


def test_sweep_recovers_what_is_over_and_leaves_what_lasts(counted: Counted, azure: Azure) -> None:
    event_id = azure.announce("vm1")
    counted.prepare(event_id)
    assert [result["outcome"] for result in counted.call("sweep")["results"]] == ["still_listed"]
    azure.cancel(event_id)
    assert [result["outcome"] for result in counted.call("sweep")["results"]] == ["recovered"]
    assert counted.call("sweep") == {"version": 1, "results": []}


def test_recover_needs_two_good_documents(tmp_path: Path, scripted: Scripted) -> None:
    minion = Counted(tmp_path, scripted.endpoint)
    scripted.events = [scripted.event("A", "vm1")]
    assert minion.prepare("A") == "prepared"
    scripted.next = [[], [scripted.event("A", "vm1")]]
    assert minion.recover("A") == "still_listed"
    scripted.next = [[], []]
    assert minion.recover("A") == "recovered"


def test_reboot_takes_back_the_preparation(counted: Counted, azure: Azure) -> None:
    event_id = azure.announce("vm1")
    counted.prepare(event_id)
    text = counted.record.read_text()
    counted.record.write_text(text.replace(Path("/proc/sys/kernel/random/boot_id").read_text().strip(), "earlier"))
    assert counted.approve(event_id, "vm1") == "not_prepared"
    assert counted.prepare(event_id) == "prepared"
    assert counted.ran == 2 * ["prepare " + event_id]


def test_record_and_its_folder_are_private(counted: Counted, azure: Azure) -> None:
    counted.record.parent.mkdir(parents=True, mode=0o755)
    counted.prepare(azure.announce("vm1"))
    assert counted.record.parent.stat().st_mode & 0o077 == 0
    assert {path.name: path.stat().st_mode & 0o777 for path in counted.record.parent.iterdir()} == {
        "prepared.json": 0o600,
        "preparation.lock": 0o600,
    }


def test_damaged_record_counts_as_by_hand_and_is_set_aside(counted: Counted, azure: Azure) -> None:
    event_id = azure.announce("vm1")
    counted.prepare(event_id)
    counted.record.write_text("{")
    (found,) = counted.call("status")["records"]
    assert (found["event_id"], found["state"]) == ("", "prepare_failed")
    assert counted.prepare(event_id) == "prepared"
    azure.cancel(event_id)
    assert counted.recover(event_id) == "recovered"
    assert len(counted.ran) == 2
    assert counted.recover() == "recovered"
    assert counted.record.with_name("prepared.json.damaged").read_text() == "{"


def test_without_steps_nothing_is_prepared_and_an_empty_list_is_enough(minion: Minion, azure: Azure) -> None:
    event_id = azure.announce("vm1")
    assert minion.call("prepare", event_id)["outcome"] == "no_steps"
    minion.opts["azure_events"]["prepare"] = []
    minion.reload()
    assert minion.call("prepare", event_id)["outcome"] == "prepared"
    azure.cancel(event_id)
    assert minion.call("recover", event_id)["outcome"] == "no_steps"


@pytest.mark.parametrize("outcome", ["prepared", "not_listed"])
def test_retcode_says_whether_it_succeeded(counted: Counted, azure: Azure, outcome: str) -> None:
    event_id = azure.announce("vm1") if outcome == "prepared" else "x"
    assert counted.prepare(event_id) == outcome
    assert counted.functions.pack["__context__"].get("retcode", 0) == (0 if outcome == "prepared" else 1)


def test_wrong_key_is_an_answer_with_the_nearest_name(counted: Counted) -> None:
    counted.configure(prepair=[])
    for function in ("prepare", "recover"):
        answer = counted.call(function, "x")
        assert answer["outcome"] == "failed" and "did you mean prepare?" in answer["reason"]
    status = counted.call("status")
    assert (status["available"], "did you mean prepare?" in status["reason"]) == (False, True)


def test_status_of_a_minion_without_imds(tmp_path: Path) -> None:
    status = Minion(tmp_path, "http://127.0.0.1:9").call("status")
    assert (status["available"], status["events"], status["records"], status["working"]) == (False, [], [], None)
    assert "no connection" in status["reason"] and not os.listdir(tmp_path)
