# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: GPL-3.0-or-later
"""The note of a maintenance run: written completely or not at all, for one run at a time."""

from __future__ import annotations

import multiprocessing
import os
from datetime import datetime, timedelta, timezone

import pytest
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils._maintenance_note import (
    NoteFile,
    NoteHeld,
    run_of,
)
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils._maintenance_note_states import set_note

NOON = datetime(2026, 11, 21, 12, tzinfo=timezone.utc)
MINE, OTHER = {"id": "here-1"}, {"id": "there-2"}
HOUR = 3600


def event(event_id, status="Scheduled"):
    return {"event_id": event_id, "status": status}


def ids(note):
    return [held["event_id"] for held in note["events"]]


@pytest.fixture
def folder(tmp_path):
    return str(tmp_path / "state" / "maintenance")


def test_a_note_is_read_as_it_was_written(folder):
    notes = NoteFile(folder, lambda: NOON)
    assert notes.read() is None
    notes.claim(MINE, [event("a")], HOUR)
    note = notes.read()
    assert run_of(note) == "here-1" and ids(note) == ["a"] and note["held"] and note["age"] == 0
    assert os.listdir(folder) == ["note.json"]


def test_a_note_of_another_run_is_respected(folder):
    NoteFile(folder, lambda: NOON).claim(OTHER, [event("a")], HOUR)
    with pytest.raises(NoteHeld) as held:
        NoteFile(folder, lambda: NOON).claim(MINE, [event("a")], HOUR)
    assert folder in str(held.value) and held.value.note["run"] == OTHER
    assert run_of(NoteFile(folder).read()) == "there-2"


@pytest.mark.parametrize("hours", [2, -2])
def test_a_note_with_a_future_time_expires_too(folder, hours):
    NoteFile(folder, lambda: NOON + timedelta(hours=hours)).claim(OTHER, [event("a")], HOUR)
    note = NoteFile(folder, lambda: NOON).claim(MINE, [event("b")], HOUR)
    assert run_of(note) == "here-1" and ids(note) == ["a", "b"] and note["earlier_runs"] == ["there-2"]


@pytest.mark.parametrize("how", [{"take_over": True}, {"replaces": "there-2"}])
def test_a_note_is_replaced_on_request(folder, how):
    NoteFile(folder).claim(OTHER, [], HOUR)
    assert run_of(NoteFile(folder).claim(MINE, [], HOUR, **how)) == "here-1"


def test_only_the_run_that_is_known_to_have_ended_is_replaced(folder):
    NoteFile(folder).claim(OTHER, [], HOUR)
    with pytest.raises(NoteHeld):
        NoteFile(folder).claim(MINE, [], HOUR, replaces="yet-another-3")


def test_a_note_that_was_left_is_free_for_any_run(folder):
    NoteFile(folder).claim(OTHER, [event("a")], HOUR)
    assert NoteFile(folder).leave("there-2", "no luck") is None
    assert NoteFile(folder).read()["left_because"] == "no luck"
    note = NoteFile(folder).claim(MINE, [event("A", "Started")], HOUR)
    assert run_of(note) == "here-1" and note["held"] and note["events"] == [event("A", "Started")]


def test_a_run_keeps_its_own_note_and_adds_events(folder):
    notes = NoteFile(folder)
    notes.claim(MINE, [event("a")], HOUR)
    notes.update("here-1", [dict(event("b"), started="then")])
    notes.update("there-2", [event("c")])
    note = notes.claim(MINE, [event("B"), event("d")], HOUR)
    assert ids(note) == ["a", "B", "d"] and note["earlier_runs"] == []
    assert note["events"][1]["started"] == "then"


def test_an_update_refreshes_the_note(folder):
    NoteFile(folder, lambda: NOON).claim(OTHER, [event("a")], HOUR)
    NoteFile(folder, lambda: NOON + timedelta(hours=2)).update("there-2")
    with pytest.raises(NoteHeld):
        NoteFile(folder, lambda: NOON + timedelta(hours=2.5)).claim(MINE, [], HOUR)
    note = NoteFile(folder).read()
    assert (note["written"], note["updated"]) == ("2026-11-21T12:00:00Z", "2026-11-21T14:00:00Z")


def test_only_the_own_note_is_removed(folder):
    notes = NoteFile(folder)
    assert notes.remove("here-1") is None
    notes.claim(OTHER, [], HOUR)
    assert run_of(notes.remove("here-1")) == run_of(notes.leave("here-1", "")) == "there-2"
    assert notes.remove("there-2") is None and notes.read() is None


def test_nothing_is_written_without_write(folder):
    assert ids(NoteFile(folder).claim(MINE, [event("a")], HOUR, write=False)) == ["a"]
    assert not os.path.exists(folder)


DAMAGED = [
    "",
    "{",
    "[]",
    '{"run": {}}',
    '{"run": {"id": ""}, "earlier_runs": [], "written": "", "updated": "", "held": true, "events": []}',
    "\xff",
]


@pytest.mark.parametrize("content", DAMAGED)
def test_an_unreadable_note_belongs_to_no_known_run(folder, content):
    os.makedirs(folder)
    path = os.path.join(folder, "note.json")
    with open(path, "w", encoding="latin-1") as file:
        file.write(content)
    os.utime(path, (NOON.timestamp(), NOON.timestamp()))
    early = NoteFile(folder, lambda: NOON + timedelta(minutes=30))
    assert "damaged" in early.read() and early.read()["age"] == 1800
    with pytest.raises(NoteHeld) as held:
        early.claim(MINE, [], HOUR, replaces="")
    assert "cannot be read" in str(held.value)
    assert run_of(NoteFile(folder, lambda: NOON + timedelta(hours=2)).claim(MINE, [], HOUR)) == "here-1"


def test_a_folder_that_others_can_write_to_is_not_used(tmp_path):
    tmp_path.chmod(0o777)
    with pytest.raises(PermissionError):
        NoteFile(str(tmp_path)).read()
    with pytest.raises(PermissionError):
        NoteFile(str(tmp_path)).claim(MINE, [], HOUR)


def test_duration_that_cannot_be_used_is_named_and_writes_no_note(folder):
    options = {"state": "present", "run": MINE, "events": [], "replaces": None, "take_over": False, "expires": "1 hour"}
    result = set_note(NoteFile(folder), options, check_mode=False)
    assert result["failed"] and result["msg"].startswith("expires: expected seconds")
    assert NoteFile(folder).read() is None


def claim_when_told(folder, begin, results, number):
    begin.wait(30)
    try:
        NoteFile(folder).claim({"id": f"run-{number}"}, [event(str(number))], HOUR)
    except NoteHeld:
        results.put(None)
    else:
        results.put(number)


def test_one_of_many_runs_at_the_same_moment_writes_the_note(folder):
    fork = multiprocessing.get_context("fork")
    begin, results = fork.Event(), fork.Queue()
    runs = [fork.Process(target=claim_when_told, args=(folder, begin, results, number)) for number in range(8)]
    for run in runs:
        run.start()
    begin.set()
    winners = [number for number in [results.get(timeout=60) for dummy in runs] if number is not None]
    for run in runs:
        run.join(60)
    assert len(winners) == 1 and run_of(NoteFile(folder).read()) == f"run-{winners[0]}"
