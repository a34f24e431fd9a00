# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The states without changes, with changes, in test mode, and with rare answers of IMDS."""

from __future__ import annotations

import socket
import threading
import time
from collections import ChainMap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jinja2
import pytest
import yaml
from salt.exceptions import CommandExecutionError

from support.salt.azure import Azure
from support.salt.cluster import TREE
from support.salt.loaded import Minion
from support.salt.scripted import ScriptedImds

event = ScriptedImds.event
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

    def cancel_after_a_poll() -> None:
        azure.wait_for_polls("vm1", more=1)
        azure.cancel(event_id)

    canceling = threading.Thread(target=cancel_after_a_poll)
    canceling.start()
    ret = minion.state("settled", timeout=60, poll_interval=0.25)
    canceling.join()
    assert (ret["result"], ret["changes"]) == (True, changes)


def test_settled_fails_after_its_timeout(minion: Minion, azure: Azure) -> None:
    azure.announce("vm1")
    ret = minion.state("settled", timeout=1)
    assert (ret["result"], ret["changes"]) == (False, {})
    assert "not over after 1 seconds" in ret["comment"]


@pytest.fixture
def here(tmp_path: Path, scripted: ScriptedImds) -> Minion:
    return Minion(tmp_path, scripted.endpoint)


@pytest.fixture
def silence() -> Iterator[str]:
    """An endpoint that accepts connections and never answers."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(50)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


def test_event_without_resources_is_not_complete(here: Minion, scripted: ScriptedImds) -> None:
    scripted.events = [event("A")]
    assert here.call("list")["complete"] is False
    pending = here.call("pending")
    assert (pending["available"], pending["pending"]) == (False, False)
    assert "not all of the document" in pending["reason"]
    assert here.state("pending")["result"] is False
    assert here.state("settled", timeout=1)["result"] is False
    # with affects=any the event is certain
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


def test_shared_event_of_pending_is_not_approved_without_a_failure(here: Minion, scripted: ScriptedImds) -> None:
    scripted.events = [event("A", "vm1"), event("B", "vm1", "vm2")]
    here.state("pending", "coming")
    ret = here.state("approved", of="coming")
    assert (ret["result"], set(ret["changes"]["approved"]), scripted.approved) == (True, {"A"}, ["A"])
    assert "others_affected" in ret["comment"]
    assert here.state("approved", of="coming", event_ids=["B"])["result"] is False


def test_pending_approves_no_unknown_type_that_nobody_has_named(here: Minion, scripted: ScriptedImds) -> None:
    kinds = {"A": "Hibernate", "B": "SpotRebalanceRecommendation", "C": "Freeze2", "D": ""}
    scripted.events = [event(event_id, "vm1", kind=kind) for event_id, kind in kinds.items()]
    here.state("pending", "coming")
    ret = here.state("approved", of="coming")
    assert (ret["result"], ret["changes"], scripted.approved) == (True, {}, [])
    assert set(here.state("approved", of="coming", types=["Hibernate"])["changes"]["approved"]) == {"A"}
    assert set(here.state("approved", of="coming", event_ids=["B"])["changes"]["approved"]) == {"B"}


def test_sls_approves_its_event_only_if_the_type_is_known_and_that_of_the_preparation(
    here: Minion, scripted: ScriptedImds
) -> None:
    text = (TREE / "azure_events" / "prepare_and_approve.sls").read_text()
    scripted.events = [event("A", "vm1", kind="Hibernate"), event("B", "vm1"), event("C", "vm1")]
    here.opts["azure_events"]["prepare"] = ["/bin/true"]
    here.reload()
    results: list[bool] = []
    for event_id in ("A", "B", "C"):
        pillar = {"azure_events_event": event_id}
        rendered = yaml.safe_load(jinja2.Template(text).render(salt={"pillar.get": pillar.get}))
        (prepared, options) = (dict(ChainMap(*state.popitem()[1])) for state in rendered.values())
        assert options.pop("require")
        assert here.state("prepared", **prepared)["result"] is True
        if event_id == "C":
            scripted.events[2] = event("C", "vm1", kind="Redeploy")
        results.append(here.state("approved", **options)["result"])
    assert (results, scripted.approved) == ([True, True, False], ["B"])


@pytest.mark.parametrize(("words", "result"), [({}, False), ({"types": ["Freeze", "Redeploy"]}, True)])
def test_event_whose_type_has_changed_since_pending_is_approved_by_its_type_only(
    here: Minion, scripted: ScriptedImds, words: dict[str, Any], result: bool
) -> None:
    scripted.events = [event("A", "vm1")]
    here.state("pending", "coming")
    scripted.events = [event("A", "vm1", kind="Redeploy")]
    ret = here.state("approved", of="coming", **words)
    assert (ret["result"], scripted.approved) == (result, ["A"] if result else [])
    assert here.state("approved", of="coming", test=True, **words)["result"] is result
    scripted.events = [event("A", "vm1", kind="Redeploy", status="Started")]
    assert here.state("approved", of="coming", **words)["result"] is True


def test_nothing_is_approved_if_pending_saw_no_event(here: Minion, scripted: ScriptedImds) -> None:
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


def test_settled_reads_times_as_other_functions_do(here: Minion, scripted: ScriptedImds) -> None:
    assert here.state("settled", timeout="30m", poll_interval="1s")["result"] is True
    ret = here.state("settled", timeout="soon")
    assert ret["result"] is False
    assert "timeout: expected seconds" in ret["comment"]


def test_settled_keeps_its_timeout_while_imds_hangs(tmp_path: Path, silence: str) -> None:
    began = time.monotonic()
    ret = Minion(tmp_path, silence).state("settled", timeout=3)
    # its own timeout, not that of a first answer
    assert time.monotonic() - began < 30
    assert ret["result"] is False
    assert "no answer within" in ret["comment"]


def test_get_of_an_event_without_resources(here: Minion, scripted: ScriptedImds) -> None:
    scripted.events = [event("A")]
    assert here.call("get", "A")["resources"] == []
    assert here.call("get", "B") is None
    scripted.events = [event("A"), {}]
    with pytest.raises(CommandExecutionError, match="it is unknown whether"):
        here.call("get", "B")
