# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Rare answers, one after another: what must not be taken for peace, and what must not be approved."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from salt.exceptions import CommandExecutionError

from azure_events_watch import watcher, watchers
from support.salt.loaded import Beacons, Minion, changes, watcher_threads
from support.salt.scripted import ScriptedImds

Watch = Callable[..., Beacons]
event = ScriptedImds.event


@pytest.fixture
def here(tmp_path: Path, scripted: ScriptedImds) -> Minion:
    return Minion(tmp_path, scripted.endpoint)


@pytest.fixture
def silence() -> Iterator[str]:
    """An endpoint that takes every connection and says nothing."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(50)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


def restarted(on: Minion, watch: Watch, beacons: Beacons, **options: Any) -> Beacons:
    beacons.wait_until_written()
    beacons.close()
    for thread in watcher_threads():
        thread.join(60)
    watchers._WATCHERS.clear()
    watchers._QUEUES.clear()
    return watch(on=on, **options)


def ids(fired: list[dict[str, Any]]) -> list[str]:
    return [one["data"]["event_id"] for one in fired]


# The beacon


def test_more_ends_at_once_than_are_remembered_are_all_sent(here: Minion, scripted: ScriptedImds, watch: Watch) -> None:
    wanted = {f"E{number:03d}" for number in range(250)}
    scripted.events = [event(key, "vm1") for key in sorted(wanted)]
    beacons = watch(on=here)
    beacons.tick_until(lambda events: len(events) == 250)
    scripted.events = []
    gone = beacons.tick_until(lambda events: len(events) == 250)
    assert set(ids(gone)) == wanted and set(changes(gone)) == {"gone"}
    assert beacons.for_seconds(1) == []


def test_interval_that_salt_cannot_use_harms_no_other_beacon(
    here: Minion, scripted: ScriptedImds, watch: Watch
) -> None:
    scripted.events = [event("A", "vm1")]
    beacons = watch(on=here)
    beacons._opts["beacons"]["wrong"] = [{"beacon_module": "azure_events"}, {"interval": "1m"}]
    assert ids(beacons.tick_until(bool)) == ["A"]
    scripted.events = []
    assert changes(beacons.tick_until(bool)) == ["gone"]


def test_name_that_is_set_later_counts_at_once(here: Minion, scripted: ScriptedImds, watch: Watch) -> None:
    scripted.name = ""
    scripted.events = [event("A", "vm1")]
    beacons = watch(on=here)
    assert beacons.for_seconds(1) == []
    beacons.close()
    named = watch(on=here, resource_name="vm1")
    assert ids(named.tick_until(bool)) == ["A"]


def test_other_name_selects_other_events(here: Minion, scripted: ScriptedImds, watch: Watch) -> None:
    scripted.events = [event("A", "vm1"), event("B", "vm7")]
    beacons = watch(on=here)
    assert ids(beacons.tick_until(bool)) == ["A"]
    beacons.close()
    beacons = watch(on=here, resource_name="vm7")
    assert ids(beacons.tick_until(bool)) == ["B"]
    beacons.close()
    scripted.events = []
    # asked for again, as nothing is configured any more
    beacons = watch(on=here)
    (gone,) = beacons.tick_until(bool) + beacons.for_seconds(1)
    assert (gone["data"]["event_id"], gone["data"]["resource_name"]) == ("A", "vm1")


def test_end_is_told_after_a_restart_without_a_name(
    here: Minion, scripted: ScriptedImds, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted.events = [event("A", "vm1"), event("B", "vm1")]
    beacons = watch(on=here, affects="any")
    beacons.tick_until(lambda fired: len(fired) == 2)
    scripted.name, scripted.events = None, [event("B", "vm1")]
    monkeypatch.setattr(watcher, "_OPTIONAL_NAME_INTERVAL", 0.5)
    beacons = restarted(here, watch, beacons, affects="any")
    fired = beacons.tick_until(lambda fired: "gone" in changes(fired))
    assert [one["data"]["event_id"] for one in fired if one["data"]["change"] == "gone"] == ["A"]
    assert here.call("watch_status")["azure_events"]["resource_name"] == "vm1"
    scripted.name = "vm1"
    beacons.for_seconds(1.5)
    scripted.events = []
    assert beacons.tick_until(bool)[-1]["data"]["resource_name"] == "vm1"


def test_name_that_turns_out_to_be_another_drops_the_memory(
    here: Minion, scripted: ScriptedImds, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted.events = [event("A", "vm1")]
    beacons = watch(on=here, affects="any")
    beacons.tick_until(bool)
    scripted.name = None
    monkeypatch.setattr(watcher, "_OPTIONAL_NAME_INTERVAL", 0.0)
    beacons = restarted(here, watch, beacons, affects="any")
    beacons.tick_until(bool)
    scripted.name = "copy"
    scripted.events = []
    assert beacons.for_seconds(1.5) == []
    assert here.call("watch_status")["azure_events"]["resource_name"] == "copy"


def test_event_that_left_this_vm_is_told_as_gone_after_a_restart(
    here: Minion, scripted: ScriptedImds, watch: Watch
) -> None:
    scripted.events = [event("A", "vm1", "vm2"), event("B", "vm2")]
    beacons = watch(on=here)
    assert ids(beacons.tick_until(bool)) == ["A"]
    scripted.events = [event("A", "vm2"), event("B", "vm2")]
    assert changes(beacons.tick_until(bool)) == ["changed"]
    scripted.events = []
    beacons = restarted(here, watch, beacons)
    fired = beacons.tick_until(lambda fired: "gone" in changes(fired)) + beacons.for_seconds(1)
    assert [one["data"]["event_id"] for one in fired if one["data"]["change"] == "gone"] == ["A"]
    assert set(ids(fired)) == {"A"}


def test_poll_interval_is_kept(here: Minion, scripted: ScriptedImds, watch: Watch) -> None:
    beacons = watch(on=here, poll_interval=3)
    beacons.for_seconds(0.5)
    before = scripted.asked
    beacons.for_seconds(5)
    assert scripted.asked - before == 1


def test_beacon_that_is_disabled_asks_no_more_and_comes_back(
    here: Minion, scripted: ScriptedImds, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watcher, "_IDLE_LIMIT", 1.0)
    beacons = watch(on=here)
    beacons.for_seconds(0.5)
    beacons._opts["beacons"]["enabled"] = False
    beacons.for_seconds(2)
    before = scripted.asked
    beacons.for_seconds(1)
    assert (scripted.asked, watcher_threads()) == (before, [])
    scripted.events = [event("A", "vm1")]
    beacons._opts["beacons"]["enabled"] = True
    assert ids(beacons.tick_until(bool)) == ["A"]


def test_beacon_that_asks_seldom_keeps_its_thread(
    here: Minion, scripted: ScriptedImds, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watcher, "_IDLE_LIMIT", 0.1)
    beacons = watch(on=here)
    beacons.tick()
    time.sleep(1)
    for thread in watcher_threads():
        thread.join(60)
    assert watcher_threads() == []
    # from now on it knows the pace
    for _turn in range(3):
        beacons.tick()
        time.sleep(1)
        assert len(watcher_threads()) == 1


# Functions and states


def test_event_that_names_no_vm_is_not_peace(here: Minion, scripted: ScriptedImds) -> None:
    scripted.events = [event("A")]
    assert here.call("list")["complete"] is False
    pending = here.call("pending")
    assert (pending["available"], pending["pending"]) == (False, False)
    assert "not all of the document" in pending["reason"]
    assert here.state("pending")["result"] is False
    assert here.state("settled", timeout=1)["result"] is False
    # who does not ask whom it hits has lost nothing
    assert here.call("list", affects="any")["complete"] is True
    assert here.call("list", types=["Reboot"])["complete"] is True


def test_only_what_was_pending_is_approved(here: Minion, scripted: ScriptedImds) -> None:
    assert here.state("pending", "coming")["changes"] == {}
    scripted.events = [event("A", "vm1")]
    ret = here.state("approved", of="coming", types=["Freeze"])
    assert (ret["result"], ret["changes"], scripted.approved) == (True, {}, [])
    here.state("pending", "coming")
    scripted.events = [event("A", "vm1"), event("B", "vm1"), event("C", "vm1", kind="Reboot")]
    for test in (True, False):
        ret = here.state("approved", of="coming", types=["Freeze"], test=test)
        assert set(ret["changes"]["approved"]) == {"A"}
    here.state("pending", "coming")
    assert set(here.state("approved", of="coming", event_ids=["b"])["changes"]["approved"]) == {"B"}
    assert set(here.state("approved", of="coming")["changes"]["approved"]) == {"C"}
    assert scripted.approved == ["A", "B", "C"]


def test_shared_event_of_pending_is_left_alone_without_a_failure(here: Minion, scripted: ScriptedImds) -> None:
    scripted.events = [event("A", "vm1"), event("B", "vm1", "vm2")]
    here.state("pending", "coming")
    ret = here.state("approved", of="coming")
    assert (ret["result"], set(ret["changes"]["approved"]), scripted.approved) == (True, {"A"}, ["A"])
    assert "others_affected" in ret["comment"]
    assert here.state("approved", of="coming", event_ids=["B"])["result"] is False


def test_nothing_is_approved_where_pending_saw_nothing(here: Minion, scripted: ScriptedImds) -> None:
    scripted.events = [event("A", "vm1")]
    ret = here.state("approved", of="coming")
    assert (ret["result"], ret["changes"]) == (False, {})
    here.state("pending", "coming")
    scripted.events = [event("B")]
    assert here.state("pending", "coming")["result"] is False
    assert here.state("approved", of="coming")["result"] is False
    assert scripted.approved == []


def test_failure_in_test_mode_has_no_changes_and_a_short_comment(here: Minion, scripted: ScriptedImds) -> None:
    scripted.events = [event("A", "vm1"), event("B", "vm1", "vm2")]
    planned = here.state("approved", event_ids=["A", "B"], test=True)
    assert (planned["result"], planned["changes"]) == (False, {})
    done = here.state("approved", event_ids=["A", "B"])
    assert (done["result"], set(done["changes"]["approved"]), scripted.approved) == (False, {"A"}, ["A"])
    for ret in (planned, done):
        assert "Additional info" not in ret["comment"]
        assert "release other VMs" in ret["comment"]


@pytest.mark.parametrize("missing", [1, 2, 3])
def test_one_missing_sight_settles_nothing(here: Minion, scripted: ScriptedImds, missing: int) -> None:
    there = [event("A", "vm1", status="Started")]
    scripted.next = [[] if number == missing else there for number in range(1, 6)]
    ret = here.state("settled", timeout=3, poll_interval=0.25)
    assert (ret["result"], ret["changes"]) == (False, {})
    scripted.next = [there, there, [], there, there, [], []]
    ret = here.state("settled", timeout=60, poll_interval=0.25)
    assert (ret["result"], ret["changes"], scripted.next) == (True, {"events": {"old": ["A"], "new": []}}, [])


def test_settled_reads_times_as_other_functions_do(here: Minion, scripted: ScriptedImds) -> None:
    assert here.state("settled", timeout="30m", poll_interval="1s")["result"] is True
    ret = here.state("settled", timeout="soon")
    assert ret["result"] is False
    assert "timeout: expected seconds" in ret["comment"]


def test_settled_keeps_its_timeout_where_imds_hangs(tmp_path: Path, silence: str) -> None:
    began = time.monotonic()
    ret = Minion(tmp_path, silence).state("settled", timeout=3)
    # and not that of a first answer
    assert time.monotonic() - began < 30
    assert ret["result"] is False
    assert "no answer within" in ret["comment"]


def test_get_of_an_event_that_names_no_vm(here: Minion, scripted: ScriptedImds) -> None:
    scripted.events = [event("A")]
    assert here.call("get", "A")["resources"] == []
    assert here.call("get", "B") is None
    scripted.events = [event("A"), {}]
    with pytest.raises(CommandExecutionError, match="it is unknown whether"):
        here.call("get", "B")
