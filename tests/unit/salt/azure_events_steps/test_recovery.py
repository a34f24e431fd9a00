# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Recovery: when it runs, for which events, and after failures."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from azure_events_watch.prepared_events import PreparedEvents
from support.salt.azure import Azure
from support.salt.scripted import ScriptedImds
from support.salt.steps import ENVIRONMENT, require
from support.salt.steps_minion import StepsMinion


def test_second_event_in_the_same_boot_runs_nothing_and_both_have_to_end(minion: StepsMinion, azure: Azure) -> None:
    first, second = azure.announce("vm1"), azure.announce("vm1", kind="Freeze")
    assert [minion.prepare(first), minion.prepare(second)] == ["prepared", "prepared"]
    azure.cancel(first)
    answer = minion.call("recover", first)
    assert (answer["outcome"], answer["changed"]) == ("still_listed", True) and second in answer["reason"]
    assert {one["event_id"]: one["over"] for one in minion.call("status")["records"]} == {first: True, second: False}
    azure.cancel(second)
    assert minion.recover(second) == "recovered"
    assert minion.ran == ["prepare " + first, "recover " + first]


def test_preparation_by_hand_is_undone_by_hand_only(minion: StepsMinion, azure: Azure) -> None:
    assert minion.prepare() == "prepared"
    assert minion.recover("00000000-forged") == "not_prepared"
    assert minion.call("sweep") == []
    event_id = azure.announce("vm1")
    assert minion.prepare(event_id) == "prepared"
    azure.cancel(event_id)
    assert minion.recover(event_id) == "recovered"
    assert minion.ran == ["prepare"]
    assert minion.recover() == "recovered"
    assert minion.ran == ["prepare", "recover"]


def test_sweep_recovers_from_ended_events_only(minion: StepsMinion, azure: Azure) -> None:
    event_id = azure.announce("vm1")
    minion.prepare(event_id)
    assert [result["outcome"] for result in minion.call("sweep")] == ["still_listed"]
    azure.cancel(event_id)
    assert [result["outcome"] for result in minion.call("sweep")] == ["recovered"]
    assert minion.call("sweep") == []


def test_recovery_needs_documents_without_the_event_that_span_two_seconds(
    tmp_path: Path, scripted: ScriptedImds
) -> None:
    minion = StepsMinion(tmp_path, scripted.endpoint)
    listed = [scripted.event("A", "vm1")]
    scripted.events = listed
    assert minion.prepare("A") == "prepared"
    scripted.next = [[], [], listed]
    assert minion.recover("A") == "still_listed"
    scripted.next = [[], [], []]
    assert minion.recover("A") == "recovered" and scripted.next == []


@pytest.mark.parametrize("others", [[], [ScriptedImds.event("B", "vm1")]], ids=["alone", "with another event"])
def test_sweep_recovers_from_an_event_that_came_back_after_a_minute_without_it(
    tmp_path: Path, scripted: ScriptedImds, others: list[dict[str, Any]]
) -> None:
    minion = StepsMinion(tmp_path, scripted.endpoint)
    listed = [scripted.event("A", "vm1")]
    scripted.events = listed + others
    for event in scripted.events:
        assert minion.prepare(event["EventId"]) == "prepared"
    scripted.events = others
    minion.call("sweep")
    scripted.events = listed
    assert minion.prepare("A") == "prepared"
    scripted.next = [[] for _second in range(50)] + [listed]
    assert {answer["outcome"] for answer in minion.call("sweep")} == {"still_listed"} and scripted.next == []
    scripted.next = [[] for _second in range(60)]
    assert {answer["outcome"] for answer in minion.call("sweep")} == {"recovered"} and scripted.next == []


def test_recovery_from_one_event_waits_a_minute_for_another_that_came_back(
    tmp_path: Path, scripted: ScriptedImds
) -> None:
    minion = StepsMinion(tmp_path, scripted.endpoint)
    first, second = scripted.event("A", "vm1"), scripted.event("B", "vm1")
    for scripted.events in ([first, second], [second], [first, second]):
        minion.prepare("A")
        minion.prepare("B")
        assert minion.recover("A") == "still_listed"
    scripted.events = []
    assert minion.recover("B") == "still_listed"
    # the caller has waited for the end of the event that it names
    assert minion.recover("A") == "recovered"


def test_event_that_came_back_while_imds_was_read_is_not_over(tmp_path: Path, scripted: ScriptedImds) -> None:
    minion = StepsMinion(tmp_path, scripted.endpoint)
    scripted.events = listed = [scripted.event("A", "vm1")]
    minion.prepare("A")
    # as after a recovery and another preparation
    returned = minion.record.read_text().replace('"returned": false', '"returned": true')
    scripted.before_answer = lambda: minion.record.write_text(returned)
    scripted.next = [[], [], [], listed]
    assert minion.recover("A") == "still_listed" and len(minion.ran) == 1


@pytest.mark.parametrize("entry", [{}, ScriptedImds.event("A")], ids=["without an id", "without resources"])
def test_event_is_not_over_while_it_may_be_an_entry_that_cannot_be_read(
    tmp_path: Path, scripted: ScriptedImds, entry: dict[str, Any]
) -> None:
    minion = StepsMinion(tmp_path, scripted.endpoint)
    scripted.events = [scripted.event("A", "vm1")]
    minion.prepare("A")
    scripted.events = [entry]
    assert minion.recover("A") == "still_listed"
    scripted.events = [scripted.event("A", "vm2")]
    assert minion.recover("A") == "recovered"


def test_preparation_gets_the_fields_of_the_event_and_the_recovery_those_of_the_record(
    minion: StepsMinion, azure: Azure, tmp_path: Path
) -> None:
    minion.configure(**{stage: [f"{ENVIRONMENT} > {tmp_path / stage}"] for stage in ("prepare", "recover")})
    event_id = azure.announce("vm1")
    minion.prepare(event_id)
    azure.cancel(event_id)
    assert minion.recover(event_id) == "recovered"
    same = {"EVENT_ID=" + event_id, "EVENT_TYPE=Reboot", "EVENT_RESOURCE=vm1", "EVENT_RESOURCES=vm1"}
    for stage in ("prepare", "recover"):
        assert {*same, "EVENT_STAGE=" + stage} <= set((tmp_path / stage).read_text().splitlines())


def test_recovery_that_fails_is_tried_again_and_the_record_stays(
    minion: StepsMinion, azure: Azure, tmp_path: Path
) -> None:
    flag = tmp_path / "flag"
    minion.configure(recover=[require(flag)])
    event_id = azure.announce("vm1")
    minion.prepare(event_id)
    azure.cancel(event_id)
    assert minion.recover(event_id) == "failed"
    assert [one["state"] for one in minion.call("status")["records"]] == ["recover_failed"]
    assert [result["outcome"] for result in minion.call("sweep")] == ["failed"]
    flag.touch()
    assert [result["outcome"] for result in minion.call("sweep")] == ["recovered"]


def test_full_disk_does_not_prevent_the_recovery(
    minion: StepsMinion, azure: Azure, monkeypatch: pytest.MonkeyPatch
) -> None:
    event_id = azure.announce("vm1")
    minion.prepare(event_id)
    azure.cancel(event_id)

    def full(*_paths: object, **_folders: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    assert minion.recover(event_id) == "recovered"
    assert minion.ran == ["prepare " + event_id, "recover " + event_id]
    assert minion.prepare(azure.announce("vm1")) == "failed"
    assert len(minion.ran) == 2


def test_preparation_does_not_count_after_a_recovery_on_a_full_disk_has_failed(
    minion: StepsMinion, azure: Azure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    minion.configure(recover=[*minion.section["recover"], require(tmp_path / "flag")])
    event_id = azure.announce("vm1")
    minion.prepare(event_id)
    azure.cancel(event_id)
    sync = os.fsync

    def full(descriptor: int) -> None:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.ENOSPC, "No space left on device")
        sync(descriptor)

    with monkeypatch.context() as disk:
        disk.setattr(os, "fsync", full)
        assert [minion.recover(event_id), minion.recover(event_id)] == ["failed", "failed"]
    assert [one["state"] for one in minion.call("status")["records"]] == ["recovering"]
    assert [event.event_id for event in PreparedEvents(str(minion.record)).events()] == [event_id]
    second = azure.announce("vm1")
    assert minion.approve(second, "vm1") == "not_prepared"
    assert minion.prepare(second) == "prepared"
    azure.cancel(second)
    (tmp_path / "flag").touch()
    assert minion.recover(second) == "recovered" and minion.call("status")["records"] == []
    assert minion.ran[-2:] == ["prepare " + second, "recover " + second]
