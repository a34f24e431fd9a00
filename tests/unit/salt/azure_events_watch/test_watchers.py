# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The watcher as the beacon calls it: rare answers of IMDS, other options and restarts lose and invent no event."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from azure_events_watch import watcher
from support.salt.scripted import ScriptedImds
from support.salt.ticks import WatcherTicks, end_process, join_threads, watcher_threads

Watch = Callable[..., WatcherTicks]
event = ScriptedImds.event


@pytest.fixture
def watch(tmp_path: Path, scripted: ScriptedImds) -> Iterator[Watch]:
    """Start to watch with such options: watch(repeat=3)."""
    made: list[WatcherTicks] = []

    def start(**options: Any) -> WatcherTicks:
        made.append(WatcherTicks(tmp_path, scripted.endpoint, **options))
        return made[-1]

    yield start
    for beacons in made:
        beacons.close()
    join_threads()


def restarted(watch: Watch, beacons: WatcherTicks, **options: Any) -> WatcherTicks:
    """Return another minion process on the same disk, which has only the state file."""
    beacons.wait_until_written()
    end_process(beacons)
    return watch(**options)


def ids(fired: list[dict[str, Any]]) -> list[str]:
    return [one["event_id"] for one in fired]


def changes(fired: list[dict[str, Any]]) -> list[str]:
    return [one["change"] for one in fired]


def test_more_ends_at_once_than_remembered_are_all_sent(scripted: ScriptedImds, watch: Watch) -> None:
    wanted = {f"E{number:03d}" for number in range(250)}
    scripted.events = [event(key, "vm1") for key in sorted(wanted)]
    beacons = watch()
    beacons.tick_until(lambda events: len(events) == 250)
    scripted.events = []
    gone = beacons.tick_until(lambda events: len(events) == 250)
    assert set(ids(gone)) == wanted and set(changes(gone)) == {"gone"}
    assert beacons.for_seconds(1) == []


def test_restarted_master_is_sent_the_listed_events_at_once_and_no_ends(scripted: ScriptedImds, watch: Watch) -> None:
    scripted.events = [event("A", "vm1"), event("B", "vm1")]
    beacons = watch()
    beacons.tick_until(lambda events: len(events) == 2)
    scripted.events = [event("A", "vm1")]
    beacons.tick_until(lambda events: "gone" in changes(events))
    # None: as between two connections
    for session, sent in (("one", ["A"]), (None, []), ("one", []), ("two", ["A"])):
        beacons.session = session
        assert (ids(beacons.tick()), beacons.tick()) == (sent, [])


def test_name_that_is_set_later_applies_at_once(scripted: ScriptedImds, watch: Watch) -> None:
    scripted.name = ""
    scripted.events = [event("A", "vm1")]
    beacons = watch()
    assert beacons.for_seconds(1) == []
    beacons.close()
    named = watch(resource_name="vm1")
    assert ids(named.tick_until(bool)) == ["A"]


def test_error_of_imds_is_logged_as_one_printable_line(
    scripted: ScriptedImds, watch: Watch, caplog: pytest.LogCaptureFixture
) -> None:
    scripted.name, scripted.error = None, "late\n[CRITICAL] forged \x1b[2J"
    watch().tick_until(lambda _fired: "retrying" in caplog.text)
    (logged,) = [record.getMessage() for record in caplog.records if "retrying" in record.getMessage()]
    assert "late?[CRITICAL] forged ?[2J" in logged and logged.isprintable()


def test_other_name_selects_other_events(scripted: ScriptedImds, watch: Watch) -> None:
    scripted.events = [event("A", "vm1"), event("B", "vm7")]
    beacons = watch()
    assert ids(beacons.tick_until(bool)) == ["A"]
    beacons.close()
    beacons = watch(resource_name="vm7")
    assert ids(beacons.tick_until(bool)) == ["B"]
    beacons.close()
    scripted.events = []
    # read from IMDS again, because it is no longer configured
    beacons = watch()
    (gone,) = beacons.tick_until(bool) + beacons.for_seconds(1)
    assert (gone["event_id"], gone["resource_name"]) == ("A", "vm1")


def test_end_is_sent_after_a_restart_without_a_name(
    scripted: ScriptedImds, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted.events = [event("A", "vm1"), event("B", "vm1")]
    beacons = watch(affects="any")
    beacons.tick_until(lambda fired: len(fired) == 2)
    scripted.name, scripted.events = None, [event("B", "vm1")]
    monkeypatch.setattr(watcher, "_OPTIONAL_NAME_INTERVAL", 0.5)
    beacons = restarted(watch, beacons, affects="any")
    fired = beacons.tick_until(lambda fired: "gone" in changes(fired))
    assert [one["event_id"] for one in fired if one["change"] == "gone"] == ["A"]
    assert beacons.resource_name == "vm1"
    scripted.name = "vm1"
    beacons.for_seconds(1.5)
    scripted.events = []
    assert beacons.tick_until(bool)[-1]["resource_name"] == "vm1"


def test_state_of_another_vm_is_dropped_once_the_name_is_known(
    scripted: ScriptedImds, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted.events = [event("A", "vm1")]
    beacons = watch(affects="any")
    beacons.tick_until(bool)
    scripted.name = None
    monkeypatch.setattr(watcher, "_OPTIONAL_NAME_INTERVAL", 0.0)
    beacons = restarted(watch, beacons, affects="any")
    beacons.tick_until(bool)
    scripted.name = "copy"
    scripted.events = []
    assert beacons.for_seconds(4) == []
    assert beacons.resource_name == "copy"


def test_event_that_no_longer_affects_this_vm_is_gone_after_a_restart(scripted: ScriptedImds, watch: Watch) -> None:
    scripted.events = [event("A", "vm1", "vm2"), event("B", "vm2")]
    beacons = watch()
    assert ids(beacons.tick_until(bool)) == ["A"]
    scripted.events = [event("A", "vm2"), event("B", "vm2")]
    assert changes(beacons.tick_until(bool)) == ["changed"]
    scripted.events = []
    beacons = restarted(watch, beacons)
    fired = beacons.tick_until(lambda fired: "gone" in changes(fired)) + beacons.for_seconds(1)
    assert [one["event_id"] for one in fired if one["change"] == "gone"] == ["A"]
    assert set(ids(fired)) == {"A"}


def test_poll_interval_is_kept(scripted: ScriptedImds, watch: Watch) -> None:
    beacons = watch(poll_interval=3)
    beacons.for_seconds(0.5)
    before = scripted.asked
    beacons.for_seconds(5)
    assert scripted.asked - before == 1


def test_beacon_with_a_long_interval_keeps_its_thread(
    scripted: ScriptedImds, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watcher, "_IDLE_LIMIT", 0.1)
    beacons = watch()
    beacons.tick()
    time.sleep(1)
    join_threads()
    # it has now measured the interval
    for _turn in range(3):
        beacons.tick()
        time.sleep(1)
        assert len(watcher_threads()) == 1
