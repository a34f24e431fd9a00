# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Preparation: which steps run, how often, and refusals; the minion's status."""

from __future__ import annotations

import errno
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from azure_scheduled_events.boot import boot_id
from support.salt.azure import Azure, failing
from support.salt.scripted import ScriptedImds
from support.salt.steps_minion import StepsMinion


def test_prepare_and_recover_run_once(minion: StepsMinion, azure: Azure) -> None:
    event_id = azure.announce("vm1")
    assert minion.prepare(event_id) == "prepared"
    assert minion.prepare(event_id.lower()) == "already_prepared"
    assert minion.recover(event_id) == "still_listed"
    azure.cancel(event_id)
    assert minion.recover(event_id) == "recovered"
    assert minion.recover(event_id) == "not_prepared"
    assert minion.ran == ["prepare " + event_id, "recover " + event_id]
    assert not minion.record.exists()


def test_test_mode_runs_nothing_and_returns_the_steps(minion: StepsMinion, azure: Azure) -> None:
    event_id = azure.announce("vm1")
    planned = minion.call("prepare", event_id, test=True)
    assert (planned["outcome"], [step["outcome"] for step in planned["steps"]]) == ("would_prepare", ["would_run"])
    minion.prepare(event_id)
    azure.cancel(event_id)
    planned = minion.call("recover", event_id, test=True)
    assert (planned["outcome"], [step["outcome"] for step in planned["steps"]]) == ("would_recover", ["would_run"])
    assert len(minion.ran) == 1


def test_prepare_refuses_an_event_that_its_own_imds_does_not_list(minion: StepsMinion, azure: Azure) -> None:
    assert minion.prepare("00000000-forged") == "not_listed"
    assert minion.prepare(azure.announce("vm2")) == "not_affected"
    started = azure.announce("vm1")
    azure.start(started)
    assert minion.prepare(started) == "started"
    with failing(azure, "empty"):
        assert minion.prepare(started) == "unavailable"
    assert minion.ran == [] and not minion.record.exists()


@pytest.mark.parametrize("section", [{"types": ["Reboot"]}, {"minimum_notice": "2d"}], ids=["types", "minimum_notice"])
def test_prepare_obeys_its_own_selection(minion: StepsMinion, azure: Azure, section: dict[str, Any]) -> None:
    minion.configure(**section)
    event_id = azure.announce("vm1", kind="Freeze")
    assert minion.prepare(event_id) == "not_selected"
    (event,) = minion.call("status")["events"]
    assert (event["selected"], event["not_selected_because"]) == (False, *section)


def test_advice_is_prepared_only_if_types_names_it(minion: StepsMinion, azure: Azure) -> None:
    advice = {"EventId": "A", "EventType": "SpotRebalanceRecommendation", "EventStatus": "Scheduled", "NotBefore": ""}
    document = {"DocumentIncarnation": 1, "Events": [dict(advice, ResourceType="VirtualMachine", Resources=["vm1"])]}
    with failing(azure, "body", route="scheduledevents", body=json.dumps(document)):
        assert minion.prepare("A") == "not_selected"
        minion.configure(types=["SpotRebalanceRecommendation"])
        assert minion.prepare("A") == "prepared"


def test_preparation_is_void_after_a_reboot(minion: StepsMinion, azure: Azure) -> None:
    event_id = azure.announce("vm1")
    minion.prepare(event_id)
    text = minion.record.read_text()
    assert boot_id() in text
    minion.record.write_text(text.replace(boot_id(), "earlier"))
    assert minion.approve(event_id, "vm1") == "not_prepared"
    assert minion.prepare(event_id) == "prepared"
    assert minion.ran == 2 * ["prepare " + event_id]


def test_steps_run_again_for_a_more_severe_event_only(minion: StepsMinion, azure: Azure) -> None:
    freeze, redeploy, reboot = (azure.announce("vm1", kind=kind) for kind in ("Freeze", "Redeploy", "Reboot"))
    for event_id in (freeze, redeploy, reboot):
        assert minion.prepare(event_id) == "prepared"
    assert minion.ran == ["prepare " + freeze, "prepare " + redeploy]
    assert minion.approve(reboot, "vm1") == "approved"


def test_preparation_that_fails_for_a_more_severe_event_counts_for_the_first_one(
    minion: StepsMinion, azure: Azure
) -> None:
    freeze, redeploy = azure.announce("vm1", kind="Freeze"), azure.announce("vm1", kind="Redeploy")
    minion.prepare(freeze)
    minion.configure(prepare=["exit 1"])
    assert minion.prepare(redeploy) == "failed"
    records = {one["event_id"]: one["state"] for one in minion.call("status")["records"]}
    assert records == {freeze: "prepared", redeploy: "prepare_failed"}
    assert minion.approve(redeploy, "vm1") == "not_prepared" and minion.approve(freeze, "vm1") == "approved"


def test_preparation_for_an_unknown_type_counts_for_this_type_only(tmp_path: Path, scripted: ScriptedImds) -> None:
    minion = StepsMinion(tmp_path, scripted.endpoint)
    scripted.events = [scripted.event(kind, "vm1", kind=kind) for kind in ("Melt", "Freeze")]
    assert [minion.prepare("Melt"), minion.prepare("Freeze"), minion.prepare("Melt")] == [
        "prepared",
        "prepared",
        "already_prepared",
    ]
    assert minion.ran == ["prepare Melt", "prepare Freeze"]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no mode bits")
def test_record_and_its_folder_are_private(minion: StepsMinion, azure: Azure) -> None:
    minion.record.parent.mkdir(parents=True, mode=0o755)
    minion.prepare(azure.announce("vm1"))
    assert minion.record.parent.stat().st_mode & 0o077 == 0
    assert {path.name: path.stat().st_mode & 0o777 for path in minion.record.parent.iterdir()} == {
        "prepared.json": 0o600,
        "preparation.lock": 0o600,
    }


@pytest.mark.parametrize("name", ["prepared.json", "recovering.json"])
def test_damaged_record_is_quarantined_and_counts_as_by_hand(minion: StepsMinion, azure: Azure, name: str) -> None:
    event_id = azure.announce("vm1")
    minion.prepare(event_id)
    minion.record.write_text("{")
    minion.record.rename(minion.record.with_name(name))
    (found,) = minion.call("status")["records"]
    assert (found["event_id"], found["state"]) == ("", "prepare_failed")
    assert minion.prepare(event_id) == "prepared"
    azure.cancel(event_id)
    assert minion.recover(event_id) == "recovered"
    assert len(minion.ran) == 2
    assert minion.recover() == "recovered"
    assert minion.record.with_name(name + ".damaged").read_text() == "{"


def test_damaged_record_counts_as_by_hand_until_the_disk_has_space(
    minion: StepsMinion, azure: Azure, monkeypatch: pytest.MonkeyPatch
) -> None:
    event_id = azure.announce("vm1")
    minion.record.parent.mkdir(parents=True)
    minion.record.write_text("{")

    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as disk:
        disk.setattr(os, "fsync", full)
        assert [minion.prepare(event_id), minion.prepare(event_id)] == ["failed", "failed"]
    assert [one["event_id"] for one in minion.call("status")["records"]] == [""]
    assert minion.prepare(event_id) == "prepared"


def test_without_steps_nothing_is_prepared_and_an_empty_list_is_enough(minion: StepsMinion, azure: Azure) -> None:
    del minion.section["prepare"], minion.section["recover"]
    event_id = azure.announce("vm1")
    assert minion.prepare(event_id) == "no_steps"
    minion.configure(prepare=[])
    assert minion.prepare(event_id) == "prepared"
    azure.cancel(event_id)
    assert minion.recover(event_id) == "no_steps"


def test_preparation_needs_no_list_of_the_events_that_are_over(minion: StepsMinion, azure: Azure) -> None:
    (minion.cachedir / "azure_events" / "gone.json").mkdir(parents=True)
    assert minion.prepare(azure.announce("vm1")) == "prepared"


def test_unwritable_record_prevents_the_preparation(minion: StepsMinion, azure: Azure) -> None:
    minion.cachedir.mkdir(parents=True)
    (minion.cachedir / "azure_events").write_text("a file where the folder should be")
    answer = minion.call("prepare", azure.announce("vm1"))
    assert answer["outcome"] == "failed" and "cannot be kept" in answer["reason"]
    assert minion.ran == []


@pytest.mark.skipif(sys.platform == "win32", reason="Windows cannot sync a folder")
def test_record_is_on_the_disk_when_the_job_ends(
    minion: StepsMinion, azure: Azure, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crash loses what is renamed or removed in a folder that was not synced since."""
    on_disk: list[bool] = []
    sync = os.fsync

    def note(descriptor: int) -> None:
        sync(descriptor)
        if Path(os.readlink(f"/proc/self/fd/{descriptor}")) == minion.record.parent:
            on_disk.append(minion.record.exists())

    monkeypatch.setattr(os, "fsync", note)
    event_id = azure.announce("vm1")
    assert minion.prepare(event_id) == "prepared" and on_disk[-1:] == [True]
    azure.end(event_id)
    assert minion.recover(event_id) == "recovered" and on_disk[-1:] == [False]


def test_status_of_a_minion_without_imds(tmp_path: Path) -> None:
    status = StepsMinion(tmp_path, "http://127.0.0.1:9").call("status")
    assert (status["available"], status["events"], status["records"], status["working"]) == (False, [], [], None)
    assert "no connection" in status["reason"] and not os.listdir(tmp_path)


def test_status_has_events_that_may_affect_this_vm(tmp_path: Path, scripted: ScriptedImds) -> None:
    scripted.events = [scripted.event("A", "vm1"), scripted.event("B"), scripted.event("C", "vm2")]
    status = StepsMinion(tmp_path, scripted.endpoint).call("status")
    assert [(event["event_id"], event["readable"]) for event in status["events"]] == [("A", True), ("B", False)]


def test_state_of_a_record_is_that_for_the_type_that_imds_lists(tmp_path: Path, scripted: ScriptedImds) -> None:
    minion = StepsMinion(tmp_path, scripted.endpoint)
    scripted.events = [scripted.event("A", "vm1", kind="Freeze")]
    minion.prepare("A")
    states = []
    for kind in ("Freeze", "Redeploy"):
        scripted.events = [scripted.event("A", "vm1", kind=kind)]
        (record,) = minion.call("status")["records"]
        states.append((record["event_type"], record["state"]))
    assert states == [("Freeze", "prepared"), ("Redeploy", "prepare_failed")]
    assert minion.prepare("A") == "prepared"
    assert minion.call("status")["records"][0]["state"] == "prepared"
