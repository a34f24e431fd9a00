# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The beacon: each change once, repeats of listed events, no lost and no false changes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from azure_events_watch import watcher
from support.salt.azure import Azure, failing
from support.salt.loaded import Beacons, CountingMinion, Minion, changes
from support.salt.ticks import end_process, join_threads, watcher_threads
from support.wait import wait_until

Watch = Callable[..., Beacons]


def restarted(watch: Watch, beacons: Beacons, **options: Any) -> Beacons:
    """Return another minion process on the same disk, which has only the state file."""
    beacons.wait_until_written()
    end_process(beacons)
    return watch(**options)


def test_selection_of_statuses_still_sends_the_end_of_what_was_sent(azure: Azure, watch: Watch) -> None:
    beacons = watch(statuses=["Started"])
    event_id, never_sent = azure.announce("vm1"), azure.announce("vm1")
    assert beacons.for_seconds(1.5) == []
    azure.cancel(never_sent)
    assert beacons.for_seconds(4) == []
    azure.start(event_id)
    assert changes(beacons.tick_until(bool)) == ["started"]
    azure.end(event_id)
    assert changes(beacons.tick_until(bool)) == ["gone"]


def test_end_is_repeated_until_the_recovery(counting: CountingMinion, azure: Azure, watch: Watch) -> None:
    beacons = watch(on=counting, repeat=1)
    event_id = azure.announce("vm1")
    counting.prepare(event_id)
    beacons.tick_until(bool)
    azure.cancel(event_id)
    beacons.tick_until(lambda events: "gone" in changes(events))
    (again,) = beacons.tick_until(bool)
    assert (again["data"]["change"], again["data"]["repeated"]) == ("gone", 1)
    beacons = restarted(watch, beacons, on=counting, repeat=1)
    assert changes(beacons.tick_until(bool)) == ["gone"]
    counting.recover(event_id)
    beacons.for_seconds(1)
    assert beacons.for_seconds(4) == []


def test_end_of_an_event_known_from_the_record_is_sent(counting: CountingMinion, azure: Azure, watch: Watch) -> None:
    event_id = azure.announce("vm1")
    counting.prepare(event_id)
    azure.cancel(event_id)
    (gone,) = watch(on=counting).tick_until(bool)
    assert (
        gone["data"]["change"],
        gone["data"]["event_id"],
        gone["data"]["event_type"],
        gone["data"]["resources"],
    ) == ("gone", event_id, "Reboot", ["vm1"])


def test_state_file_is_not_written_while_nothing_changes(minion: Minion, azure: Azure, watch: Watch) -> None:
    beacons = watch()
    azure.announce("vm1")
    beacons.tick_until(bool)
    beacons.wait_until_written()
    before = minion.seen.stat().st_mtime_ns
    polls = azure.requests("vm1")
    beacons.tick_until(lambda _fired: azure.requests("vm1") > polls + 3)
    assert minion.seen.stat().st_mtime_ns == before


def test_selection_of_the_minion_limits_the_beacon(minion: Minion, azure: Azure, watch: Watch) -> None:
    minion.opts["azure_events"]["types"] = ["Freeze"]
    minion.reload()
    beacons = watch(types=["Reboot", "Freeze"])
    azure.announce("vm1")
    event_id = azure.announce("vm1", kind="Freeze")
    assert [event["data"]["event_id"] for event in beacons.tick_until(bool) + beacons.for_seconds(1)] == [event_id]
    valid, sentence = minion.call("watch_check", [{"types": ["Reboot"]}, {"_beacon_name": "azure_events"}])
    assert not valid and "no event is in both" in sentence
    assert minion.call("watch_check", [{"types": ["Reboot"]}, {"_beacon_name": "of_all"}])[0] is True


def test_event_is_forgotten_after_gone_for(minion: Minion, azure: Azure, watch: Watch) -> None:
    beacons = watch(repeat=30, gone_for=1)
    event_id = azure.announce("vm1")
    beacons.tick_until(bool)
    azure.cancel(event_id)
    assert changes(beacons.tick_until(bool)) == ["gone"]
    beacons.tick_until(lambda _fired: minion.call("watch_status")["azure_events"]["events"] == [])
    assert beacons.for_seconds(1) == []


def test_refresh_during_a_hanging_request_leaves_one_thread(azure: Azure, watch: Watch) -> None:
    beacons = watch(first_timeout=5, timeout=5)
    with failing(azure, "hang"):
        beacons.tick()
        for _turn in range(4):
            beacons.refresh()
            beacons.for_seconds(0.2)
        assert len(watcher_threads()) == 1


def test_thread_ends_without_calls_of_the_beacon_and_restarts(
    azure: Azure, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    beacons = watch()
    beacons.for_seconds(0.5)
    monkeypatch.setattr(watcher, "_IDLE_LIMIT", 0.5)
    join_threads()
    monkeypatch.undo()
    azure.announce("vm1")
    assert changes(beacons.tick_until(bool)) == ["scheduled"]


def test_unknown_is_not_gone(minion: Minion, azure: Azure, watch: Watch) -> None:
    beacons = watch(timeout=1)
    azure.announce("vm1")
    beacons.tick_until(bool)
    for kind in ("empty", "server-error", "refuse", "html"):
        with failing(azure, kind):
            assert beacons.for_seconds(4) == []
    with failing(azure, "empty"):
        assert restarted(watch, beacons, timeout=1).for_seconds(4) == []


@pytest.mark.parametrize("content", [b"{", b'{"version": 99}'])
def test_damaged_state_file_is_logged_once_and_replaced(
    minion: Minion, azure: Azure, watch: Watch, caplog: Any, content: bytes
) -> None:
    minion.seen.parent.mkdir(parents=True)
    minion.seen.write_bytes(content)
    event_id = azure.announce("vm1")
    assert [event["data"]["event_id"] for event in watch().tick_until(bool)] == [event_id]
    lines = [
        record
        for record in caplog.records
        if "the state is lost" in record.getMessage() or "another VM" in record.getMessage()
    ]
    assert len(lines) == 1
    wait_until(lambda: minion.seen_text() != content.decode("latin-1"), "a new state file")
    assert json.loads(minion.seen_text())["version"] == 1


def test_state_file_of_another_vm_causes_no_end(minion: Minion, azure: Azure, watch: Watch) -> None:
    beacons = watch()
    event_id = azure.announce("vm1")
    beacons.tick_until(bool)
    beacons.wait_until_written()
    end_process(beacons)
    azure.cancel(event_id)
    minion.seen.write_text(minion.seen.read_text().replace('"resource_name": "vm1"', '"resource_name": "image"'))
    assert watch().for_seconds(4) == []


def test_unwritable_state_file_is_logged_once(minion: Minion, azure: Azure, watch: Watch, caplog: Any) -> None:
    minion.seen.parent.parent.mkdir(parents=True, exist_ok=True)
    minion.seen.parent.write_text("a file where the folder should be")
    beacons = watch()
    event_id = azure.announce("vm1")
    beacons.tick_until(bool)
    beacons.refresh()
    assert beacons.for_seconds(1) == []
    azure.cancel(event_id)
    assert changes(beacons.tick_until(bool)) == ["gone"]
    assert len([record for record in caplog.records if "cannot write the state" in record.getMessage()]) == 1


def test_watch_status_returns_the_events_and_the_failure_of_imds(minion: Minion, azure: Azure, watch: Watch) -> None:
    assert minion.call("watch_status") == {}
    beacons = watch(timeout=1)
    event_id = azure.announce("vm1")
    beacons.tick_until(bool)
    beacons.wait_until_written()
    status = minion.call("watch_status", "azure_events")["azure_events"]
    assert (status["resource_name"], status["error"], [event["event_id"] for event in status["events"]]) == (
        "vm1",
        None,
        [event_id],
    )
    with failing(azure, "server-error"):
        beacons.tick_until(lambda _fired: "answered 500" in str(minion.call("watch_status")["azure_events"]["error"]))
    assert minion.call("watch_status", "other") == {}


@pytest.mark.parametrize(
    ("config", "complaint"),
    [
        ({"affects": "any"}, "has to be a list"),
        ([{"intervall": 3}], "unknown key 'intervall'; did you mean interval?"),
        ([{"affects": 3}], "affects: expected a text, not 3"),
        ([{"endpoint": "https://169.254.169.254"}], "not an address of IMDS"),
        ([{"endpoint": 1}], "endpoint: expected a text"),
        ([{"repeat": 0}], "repeat: expected at least 1 seconds"),
        ([{"poll_interval": 0.1}], "at least 0.25"),
        ([{"resource_name": ""}], "resource_name: expected"),
        (["affects"], "expected an option with its value"),
        *(
            ([{"interval": wrong}], "interval: expected seconds as a number above 0")
            for wrong in ("1m", "abc", -3, 0, [1], True, float("nan"))
        ),
        ([{"enabled": "maybe"}], "enabled: expected true or false"),
        ([{"beacon_module": 7}], "beacon_module: expected the name"),
        ([{"api_version": "foo"}], "api_version: expected an api-version"),
        ([{"types": []}], "types: an empty list selects no event"),
        ([{"affects": []}], "affects: an empty list names no VM"),
    ],
)
def test_validate_names_the_problem(minion: Minion, config: Any, complaint: str) -> None:
    beacons = Beacons(minion, [])
    valid, sentence = beacons._salt.beacons["azure_events.validate"](config)
    assert valid is False
    assert complaint in sentence


def test_validate_accepts_options_that_no_other_test_gives(minion: Minion) -> None:
    beacons = Beacons(minion, [])
    options = [
        {"sources": ["Platform"]},
        {"endpoint": "http://169.254.169.254"},
        {"api_version": "2020-07-01"},
        {"resource_name": "vm1"},
        {"interval": 0.5},
        {"enabled": True},
        {"disable_during_state_run": True},
        {"beacon_module": "azure_events"},
    ]
    assert beacons._salt.beacons["azure_events.validate"](options)[0] is True


def test_beacon_never_raises_and_always_returns_a_list(minion: Minion) -> None:
    beacon = Beacons(minion, [])._salt.beacons["azure_events.beacon"]
    assert beacon([{"timeout": "soon"}]) == []
    assert beacon(None) == []


def test_two_beacons_of_one_minion(minion: Minion, azure: Azure, watch: Watch) -> None:
    beacons = watch()
    beacons._opts["beacons"]["azure_of_all"] = [
        {"beacon_module": "azure_events"},
        {"affects": "any"},
        {"poll_interval": 0.5},
    ]
    beacons.refresh()
    theirs = azure.announce("vm2")
    (event,) = beacons.tick_until(bool)
    assert (event["tag"], event["data"]["event_id"]) == ("salt/beacon/minion1/azure_of_all/scheduled", theirs)
    beacons._salt.beacons["azure_events.close"]([{"_beacon_name": "azure_of_all"}])


def test_grain_is_off_by_default_and_reads_the_disk_only(minion: Minion, azure: Azure, watch: Watch) -> None:
    import salt.loader

    event_id = azure.announce("vm1")
    beacons = watch()
    beacons.tick_until(bool)
    beacons.wait_until_written()
    opts = dict(minion.opts, azure_events={"endpoint": "http://127.0.0.1:9"})
    assert "azure_events" not in salt.loader.grains(dict(opts), force_refresh=True)
    opts["azure_events_grain"] = True
    grain = salt.loader.grains(opts, force_refresh=True)["azure_events"]
    assert (grain["pending"], grain["resource_name"], [event["event_id"] for event in grain["events"]]) == (
        True,
        "vm1",
        [event_id],
    )
    assert grain["events"][0]["not_before"] == minion.call("get", event_id)["not_before"]


def test_interval_that_salt_cannot_use_does_not_affect_other_beacons(azure: Azure, watch: Watch) -> None:
    event_id = azure.announce("vm1")
    beacons = watch()
    beacons._opts["beacons"]["wrong"] = [{"beacon_module": "azure_events"}, {"interval": "1m"}]
    (scheduled,) = beacons.tick_until(bool)
    assert scheduled["data"]["event_id"] == event_id
    azure.cancel(event_id)
    assert changes(beacons.tick_until(bool)) == ["gone"]


def test_disabled_beacon_stops_polling_and_resumes(azure: Azure, watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watcher, "_IDLE_LIMIT", 1.0)
    beacons = watch()
    beacons.for_seconds(0.5)
    beacons._opts["beacons"]["enabled"] = False
    beacons.for_seconds(2)
    before = azure.requests("vm1")
    beacons.for_seconds(1)
    assert (azure.requests("vm1"), watcher_threads()) == (before, [])
    event_id = azure.announce("vm1")
    beacons._opts["beacons"]["enabled"] = True
    (scheduled,) = beacons.tick_until(bool)
    assert scheduled["data"]["event_id"] == event_id
