# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The states without changes, with changes, in test mode, and with a failing IMDS."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from support.salt.azure import Azure
from support.salt.loaded import Minion

EVERY = [("pending", {}), ("approved", {"types": ["Reboot"]}), ("settled", {"timeout": 1})]


@pytest.mark.parametrize(("function", "words"), EVERY)
@pytest.mark.parametrize("test", [False, True])
def test_states_without_an_event_succeed_without_changes(
    minion: Minion, function: str, words: dict[str, Any], test: bool
) -> None:
    ret = minion.state(function, test=test, **words)
    assert (ret["name"], ret["result"], ret["changes"]) == ("x", True, {})
    assert ret["comment"]


@pytest.mark.parametrize(("function", "words"), EVERY)
@pytest.mark.parametrize("test", [False, True])
def test_imds_failure_fails_the_states(tmp_path: Path, function: str, words: dict[str, Any], test: bool) -> None:
    ret = Minion(tmp_path, "http://127.0.0.1:9").state(function, test=test, **words)
    assert (ret["result"], ret["changes"]) == (False, {})
    assert "no connection" in ret["comment"]


@pytest.mark.parametrize(("function", "words"), EVERY)
def test_misspelt_option_fails_the_states(minion: Minion, function: str, words: dict[str, Any]) -> None:
    ret = minion.state(function, **dict(words, sources=["Plattform"]))
    assert ret["result"] is False
    assert "did you mean Platform" in ret["comment"]


@pytest.mark.parametrize("test", [False, True])
def test_pending_has_changes_with_an_event(minion: Minion, azure: Azure, test: bool) -> None:
    event_id = azure.announce("vm1", "vm2")
    azure.announce("vm2")
    ret = minion.state("pending", test=test)
    assert ret["result"] is (None if test else True)
    assert ret["changes"] == {"events": {"old": [], "new": [event_id]}}


def test_approved_is_idempotent(minion: Minion, azure: Azure) -> None:
    event_id = azure.announce("vm1")
    changes = {"approved": {event_id: {"old": "not approved", "new": "approved"}}}
    planned = minion.state("approved", event_id, test=True)
    assert (planned["result"], planned["changes"], azure.approvals(event_id)) == (None, changes, [])
    assert minion.state("approved", event_id)["changes"] == changes
    for test in (False, True):
        again = minion.state("approved", event_id, test=test)
        assert (again["result"], again["changes"]) == (True, {})
    assert "already_approved" in again["comment"]


def test_approved_fails_if_other_vms_would_be_released(minion: Minion, azure: Azure) -> None:
    event_id = azure.announce("vm1", "vm2")
    for test in (False, True):
        ret = minion.state("approved", event_id, test=test)
        assert (ret["result"], ret["changes"]) == (False, {})
    assert azure.approvals(event_id) == []


def test_approved_by_policy(minion: Minion, azure: Azure) -> None:
    platform, user = azure.announce("vm1"), azure.announce("vm1", source="User")
    assert set(minion.state("approved", policy="documented")["changes"]["approved"]) == {user}
    assert azure.approvals(platform) == []


def test_approved_with_an_empty_list_approves_nothing(minion: Minion, azure: Azure) -> None:
    event_id = azure.announce("vm1")
    ret = minion.state("approved", event_id, event_ids=[])
    assert (ret["result"], ret["changes"], azure.approvals(event_id)) == (True, {}, [])


def test_settled_waits_for_the_end(minion: Minion, azure: Azure) -> None:
    event_id = azure.announce("vm1")
    changes = {"events": {"old": [event_id], "new": []}}
    planned = minion.state("settled", test=True)
    assert (planned["result"], planned["changes"]) == (None, changes)
    timer = threading.Timer(1.5, azure.cancel, [event_id])
    timer.start()
    ret = minion.state("settled", timeout=20, poll_interval=0.25)
    timer.join()
    assert (ret["result"], ret["changes"]) == (True, changes)


def test_settled_fails_after_its_timeout(minion: Minion, azure: Azure) -> None:
    azure.announce("vm1")
    ret = minion.state("settled", timeout=1)
    assert (ret["result"], ret["changes"]) == (False, {})
    assert "not over after 1 seconds" in ret["comment"]
