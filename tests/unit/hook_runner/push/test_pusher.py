# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""From a document to a delivery, through kills, a full disk, and another VM's spool."""

from __future__ import annotations

import io
import json
import os
import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from azure_scheduled_events.document import EventDocument, parse_document
from hook_runner.clock import ServerClock
from hook_runner.log import Log
from hook_runner.push.delivery_queue import ATTEMPTS_IF_REFUSED, Answer, Delivery, DeliveryQueue
from hook_runner.push.pusher import Pusher
from hook_runner.push.spool import Spool
from support.daemon.child_processes import die, in_child, without_room

NOON = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)
SIGKILL = -9
# the most commits of one life below
MOST = 40


def document(*events: tuple[str, str]) -> EventDocument:
    """A document of events, each an EventId and a status."""
    listed = [
        {"EventId": event_id, "EventStatus": status, "EventType": "Reboot", "Resources": ["vm1"]}
        for event_id, status in events
    ]
    return parse_document(json.dumps({"DocumentIncarnation": 1, "Events": listed}))


LISTED, STARTED, NOTHING = document(("A", "Scheduled")), document(("A", "Started")), document()
LIFE = (NOTHING, LISTED, STARTED, NOTHING, NOTHING)


class Made:
    """A pusher whose deliveries are answered by `status`; the deliveries are in a file."""

    def __init__(self, folder: Path, most: int = 100, start: float = 0.0) -> None:
        self.folder, self.now, self.status = folder, start, 200
        self.log = io.StringIO()
        clock = ServerClock(lambda: self.now, lambda: NOON + timedelta(seconds=self.now))
        log = Log("debug", self.log)
        self.spool = Spool(str(folder / "push.db"), lambda text: log.write("warning", text), lambda: self.now)
        self.sent: list[Delivery] = []
        self.pusher = Pusher(
            "http://eda:5000/", self.spool, DeliveryQueue(most, 1000.0, lambda: 1.0), clock, log, self.sent.append
        )

    def identify(self, name: str = "vm1", vm_id: str = "id-1") -> Made:
        self.pusher.identified(name, vm_id)
        return self

    def observe(self, *documents: EventDocument) -> None:
        for each in documents:
            self.pusher.observe(each)
            self.answer()

    def answer(self) -> None:
        """Answer all deliveries that are due."""
        self.pusher.tick()
        while self.sent:
            delivery = self.sent.pop(0)
            if self.status < 300:
                with open(self.folder / "delivered", "ab") as file:
                    file.write(delivery.body + b"\n")
            self.pusher.answered(Answer(delivery.number, self.status, "it failed" if self.status >= 300 else ""))
            self.pusher.tick()

    def delivered(self) -> list[dict[str, Any]]:
        path = self.folder / "delivered"
        return [json.loads(line) for line in path.read_bytes().splitlines()] if path.exists() else []


def kinds(delivered: list[dict[str, Any]]) -> list[str]:
    """The changes by their ids: a repeated delivery counts once, at its first place."""
    return [each["change"] for each in {each["id"]: each for each in delivered[::-1]}.values()][::-1]


def test_a_change_has_the_shared_shape(tmp_path: Path) -> None:
    made = Made(tmp_path).identify()
    made.observe(LISTED)
    (change,) = made.delivered()
    assert len(change.pop("id")) == 32
    assert change == {
        "schema": "azure_imds.scheduled_events/change/1",
        "change": "appeared",
        "outcome": None,
        "event": LISTED.events[0].as_dict(),
        "observed_at": "2026-11-23T12:00:00.000Z",
        "reporter": "vm1",
        "reported_by": "hook_runner",
        "resource_id": None,
    }
    assert set(change["event"]) == {
        *("event_id", "event_type", "status", "resources", "resource_type"),
        *("not_before", "description", "source", "duration_seconds"),
    }


def test_each_change_is_delivered_once_and_in_order(tmp_path: Path) -> None:
    made = Made(tmp_path).identify()
    made.observe(*LIFE, NOTHING)
    assert [each["change"] for each in made.delivered()] == ["appeared", "started", "gone"]
    data = made.pusher.as_data()
    assert (data["pending"], data["delivered"], data["error"], data["spool_error"]) == (0, 3, None, None)
    assert data["last_delivered_at"] == "2026-11-23T12:00:00Z"


def test_nothing_is_reported_before_it_is_known_which_vm_this_is(tmp_path: Path) -> None:
    made = Made(tmp_path)
    made.observe(LISTED)
    assert made.pusher.awaits_observation() and made.delivered() == []
    made.identify()
    assert made.pusher.awaits_observation()
    made.observe(LISTED)
    assert kinds(made.delivered()) == ["appeared"] and not made.pusher.awaits_observation()


def test_changes_wait_through_a_restart_with_their_ids(tmp_path: Path) -> None:
    made = Made(tmp_path).identify()
    made.status = 503
    made.observe(LISTED, STARTED)
    waiting = list(made.pusher._queue.deliveries.values())
    assert (made.pusher.pending, made.delivered()) == (2, [])
    again = Made(tmp_path, start=360.0).identify()
    again.answer()
    assert [each["id"] for each in again.delivered()] == [each.id for each in waiting]
    again.observe(STARTED)
    assert kinds(again.delivered()) == ["appeared", "started"]


@pytest.mark.parametrize("when", ["before", "after"])
def test_kill_9_at_each_commit_loses_and_repeats_no_change(tmp_path: Path, when: str) -> None:
    for number in range(1, MOST):
        folder = tmp_path / str(number)
        folder.mkdir()
        status = in_child(lambda folder=folder, number=number: live_until(folder, number, when))  # type: ignore[misc]
        assert status in (0, SIGKILL)
        made = Made(folder).identify()
        # the next process sees the documents from the one on that the dead one saw last
        seen = len((folder / "seen").read_bytes()) if (folder / "seen").exists() else 0
        made.observe(*LIFE[max(0, seen - 1) :], NOTHING, NOTHING)
        delivered = made.delivered()
        assert kinds(delivered) == ["appeared", "started", "gone"], number
        # only an answer that was not noted is repeated, with its id
        assert len(delivered) <= 4
        made.spool.close()
        if status == 0:
            assert number > 5
            return
    raise AssertionError("there is no end of commits")


def live_until(folder: Path, number: int, when: str) -> None:
    """Observe a life, and die before or after the commit of this number."""
    commit, count = Spool._commit, 0

    def mortal(spool: Spool, connection: sqlite3.Connection) -> None:
        nonlocal count
        count += 1
        if (count, when) == (number, "before"):
            die()
        commit(spool, connection)
        if (count, when) == (number, "after"):
            die()

    setattr(Spool, "_commit", mortal)
    made = Made(folder).identify()
    for each in LIFE:
        with open(folder / "seen", "ab") as file:
            file.write(b".")
        made.observe(each)


def test_a_full_disk_stops_neither_changes_nor_deliveries(tmp_path: Path) -> None:
    made = Made(tmp_path).identify()
    made.observe(NOTHING)
    made.spool.close()
    reader, writer = os.pipe()

    def work() -> None:
        full = Made(tmp_path).identify()
        without_room(0)
        full.pusher.observe(LISTED)
        (delivery,) = full.sent
        os.write(writer, delivery.id.encode("ascii"))
        full.pusher.answered(Answer(delivery.number, 200))
        data = full.pusher.as_data()
        assert data["spool_error"] and "cannot be written" in data["spool_error"]
        assert (data["delivered"], data["pending"]) == (1, 0)
        full.now = 6.0
        full.pusher.observe(STARTED)
        assert len(full.sent) == 2

    assert in_child(work) == 0
    # the file was not written: the next process finds the same change, and gives it the same id
    made = Made(tmp_path, start=100.0).identify()
    made.observe(LISTED)
    assert made.delivered()[0]["id"].encode("ascii") == os.read(reader, 100)
    os.close(reader)
    os.close(writer)


def test_the_spool_of_another_vm_is_emptied(tmp_path: Path) -> None:
    made = Made(tmp_path).identify()
    made.status = 503
    made.observe(LISTED)
    clone = Made(tmp_path).identify("vm2", "id-2")
    clone.answer()
    assert (clone.pusher.pending, clone.delivered()) == (0, [])
    assert "the spool is that of the VM vm1" in clone.log.getvalue()
    clone.observe(LISTED)
    assert [each["reporter"] for each in clone.delivered()] == ["vm2"]
    assert Made(tmp_path).identify("vm2", "id-2").pusher.pending == 0


def test_a_spool_that_cannot_be_read_delays_the_changes(tmp_path: Path) -> None:
    first = Made(tmp_path).identify()
    first.observe(LISTED)
    holder = sqlite3.connect(tmp_path / "push.db", isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    made = Made(tmp_path).identify()
    made.observe(STARTED)
    assert made.sent == [] and made.pusher.awaits_observation() and made.pusher.due_in() is not None
    holder.close()
    made.now = 6.0
    made.answer()
    made.observe(STARTED)
    assert kinds(made.delivered()) == ["appeared", "started"]


def test_dropped_changes_are_counted_and_logged(tmp_path: Path) -> None:
    made = Made(tmp_path, most=2).identify()
    made.status = 503
    made.observe(document(*((name, "Scheduled") for name in "ABCD")))
    assert made.pusher.as_data()["lost"] == {"refused": 0, "spool_full": 2, "too_old": 0}
    assert "2 changes are dropped undelivered: the spool has reached push_spool_changes" in made.log.getvalue()
    made.now = 1001.0
    made.pusher.tick()
    assert made.pusher.as_data()["lost"]["too_old"] >= 1
    assert Made(tmp_path).identify().pusher.pending == made.pusher.pending


def test_a_refused_change_is_dropped_and_the_next_one_is_delivered(tmp_path: Path) -> None:
    made = Made(tmp_path).identify()
    made.status = 413
    made.pusher.observe(LISTED)
    for _attempt in range(ATTEMPTS_IF_REFUSED):
        made.answer()
        made.now += 60.0
    assert made.pusher.as_data()["lost"]["refused"] == 1 and made.pusher.pending == 0
    made.status = 200
    made.observe(STARTED)
    assert kinds(made.delivered()) == ["started"] and made.pusher.as_data()["error"] is None


def test_a_failure_is_logged_once_and_its_end_too(tmp_path: Path) -> None:
    made = Made(tmp_path).identify()
    made.status = 401
    made.observe(LISTED)
    for _attempt in range(5):
        made.now += 100.0
        made.answer()
    made.status = 200
    made.now += 100.0
    made.answer()
    lines = [line for line in made.log.getvalue().splitlines() if "push" in line]
    assert len(lines) == 2 and "it failed" in lines[0] and "takes changes again" in lines[1]
