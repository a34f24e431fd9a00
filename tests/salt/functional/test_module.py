# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The execution module: the same options, shapes and checks as the modules for Ansible."""

from __future__ import annotations

import inspect
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from salt.exceptions import CommandExecutionError, SaltInvocationError
from salt.loader import minion_mods

from support.salt.azure import MEMBERS, Azure
from support.salt.loaded import Minion
from support.salt.ticks import watcher_threads

FUNCTIONS = (
    "list",
    "get",
    "instance",
    "pending",
    "wait",
    "status",
    "prepare",
    "recover",
    "sweep",
    "approve_prepared",
    "check",
    "approve",
    "watch_status",
    "watch_check",
    "watch_news",
    "watch_close",
)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_shows_how_it_is_called_and_what_it_returns(minion: Minion, name: str) -> None:
    text = inspect.getdoc(minion.functions["azure_events." + name]) or ""
    assert "CLI Example:\n\n.. code-block:: bash\n\n    salt" in text
    assert "eturns" in text or name in ("get", "instance", "watch_check", "watch_news")


def test_there_are_no_other_functions(minion: Minion) -> None:
    assert {name for name in minion.functions if name.startswith("azure_events.")} == {
        "azure_events." + name for name in FUNCTIONS
    }


def test_list_has_the_shape_of_event_info(minion: Minion, azure: Azure) -> None:
    event_id = azure.announce("vm1", "vm2")
    found = minion.call("list")
    assert set(found) == {"events", "api_version", "complete", "incarnation", "resource_name", "warnings"}
    assert (found["api_version"], found["complete"], found["resource_name"]) == ("2020-07-01", True, "vm1")
    (event,) = found["events"]
    assert set(event) == MEMBERS
    assert (event["event_id"], event["resources"]) == (event_id, ["vm1", "vm2"])


@pytest.mark.parametrize(("words", "count"), [({}, 1), ({"types": ["Freeze"]}, 0), ({"affects": "any"}, 2)])
def test_list_applies_the_selection(minion: Minion, azure: Azure, words: dict[str, Any], count: int) -> None:
    azure.announce("vm1")
    azure.announce("vm2", kind="Freeze")
    assert len(minion.call("list", **words)["events"]) == count


def test_get_finds_events_of_others_too_and_none_that_is_over(minion: Minion, azure: Azure) -> None:
    event_id = azure.announce("vm2")
    assert minion.call("get", event_id.lower())["event_id"] == event_id
    azure.cancel(event_id)
    assert minion.call("get", event_id) is None


def test_instance(minion: Minion) -> None:
    assert minion.call("instance")["compute"]["name"] == "vm1"


def test_imds_failure_is_an_error_but_not_of_pending(tmp_path: Path) -> None:
    nowhere = Minion(tmp_path, "http://127.0.0.1:9")
    for function in (("list",), ("get", "X"), ("instance",), ("approve", "X")):
        with pytest.raises(CommandExecutionError, match="no connection"):
            nowhere.call(*function)
    pending = nowhere.call("pending")
    assert (pending["available"], pending["pending"]) == (False, False)
    assert "no connection" in pending["reason"]


def test_wait(minion: Minion, azure: Azure) -> None:
    assert minion.call("wait", "absent")["outcome"] == "reached"
    event_id = azure.announce("vm1")
    found = minion.call("wait", "scheduled")
    assert [event["event_id"] for event in found["events"]] == [event_id]
    with pytest.raises(CommandExecutionError, match="not over after 1 seconds"):
        minion.call("wait", "absent", timeout=1)
    with pytest.raises(CommandExecutionError, match="gone and were not seen started"):
        minion.call("wait", "started", event_ids=["0"], timeout=9, poll_interval=0.25)
    with pytest.raises(SaltInvocationError, match="did you mean absent"):
        minion.call("wait", "abzent")
    with pytest.raises(SaltInvocationError, match="at least 0.25"):
        minion.call("wait", poll_interval=0)


def test_nothing_approves_by_default(minion: Minion, azure: Azure) -> None:
    event_id = azure.announce("vm1")
    with pytest.raises(SaltInvocationError, match="nothing approves by default"):
        minion.call("approve")
    for words in ({"event_ids": []}, {"policy": "observe"}, {"types": ["Freeze"]}):
        assert minion.call("approve", **words)["approved"] == []
    assert azure.approvals(event_id) == []


def test_approve_once(minion: Minion, azure: Azure) -> None:
    event_id = azure.announce("vm1")
    planned = minion.call("approve", event_ids=event_id, test=True)
    assert (planned["changed"], planned["approved"], azure.approvals(event_id)) == (True, [event_id], [])
    assert minion.call("approve", event_ids=event_id)["changed"] is True
    again = minion.call("approve", event_ids=event_id)
    assert (again["changed"], again["approvals"][0]["outcome"]) == (False, "already_approved")
    assert len(set(azure.approvals(event_id))) == 1


def test_other_vms_are_released_only_with_release_others(minion: Minion, azure: Azure) -> None:
    event_id = azure.announce("vm1", "vm2")
    with pytest.raises(CommandExecutionError, match="release other VMs") as failed:
        minion.call("approve", event_ids=[event_id])
    assert failed.value.info["approvals"][0]["outcome"] == "others_affected"
    assert minion.call("approve", types=["Reboot"])["approvals"][0]["outcome"] == "others_affected"
    assert azure.approvals(event_id) == []
    assert minion.call("approve", event_ids=[event_id], release_others=True)["approved"] == [event_id]


def test_empty_list_of_vms_is_refused(minion: Minion, azure: Azure) -> None:
    event_id = azure.announce("vm1")
    for function in ("list", "pending", "wait", "approve"):
        with pytest.raises(SaltInvocationError, match="affects: an empty list names no VM"):
            minion.call(function, types=["Reboot"], affects=[])
    assert azure.approvals(event_id) == []


def test_invalid_api_version_is_refused(minion: Minion) -> None:
    with pytest.raises(SaltInvocationError, match="api_version: expected an api-version"):
        minion.call("list", api_version="foo")


@pytest.mark.parametrize(
    ("name", "value"),
    [("test", None), ("test", 0), ("release_others", "yes"), ("gates", ["a"]), ("gates", {"a": "yes"})],
)
def test_approve_refuses_an_argument_by_its_name(minion: Minion, azure: Azure, name: str, value: Any) -> None:
    event_id = azure.announce("vm1")
    with pytest.raises(SaltInvocationError, match=rf"{name}(\.a)?: expected"):
        minion.call("approve", event_ids=[event_id], **{name: value})
    assert azure.approvals(event_id) == []


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no mode bits")
def test_folder_is_private_when_an_approval_makes_it(minion: Minion, azure: Azure) -> None:
    minion.call("approve", event_ids=azure.announce("vm1"), test=True)
    assert not minion.seen.parent.exists()
    minion.call("approve", types="Reboot")
    assert minion.seen.parent.stat().st_mode & 0o077 == 0


def test_watch_news_in_a_job_starts_no_thread(minion: Minion) -> None:
    with pytest.raises(SaltInvocationError, match="watch_news is for the beacon alone"):
        minion.call("watch_news", [{"affects": "any"}])
    assert watcher_threads() == []
    assert minion.call("watch_close", [{"affects": "any"}]) is True


def as_salt_call(minion: Minion) -> Minion:
    minion.opts["__cli"] = "salt-call"
    minion.reload()
    return minion


@pytest.mark.parametrize("argument", ["policy_file", "receipts"])
def test_path_in_a_job_needs_allow_paths(minion: Minion, azure: Azure, tmp_path: Path, argument: str) -> None:
    azure.announce("vm1")
    path = tmp_path / argument
    path.write_text("rules: [{when: {type: Freeze}, approve: now}]") if argument == "policy_file" else path.mkdir(
        mode=0o700
    )
    words = {argument: str(path), "types": ["Reboot"], "test": True}
    minion.opts["pillar"] = {"azure_events": {"allow_paths": True}}
    minion.reload()
    with pytest.raises(SaltInvocationError, match=f"{argument}: .*allow_paths"):
        minion.call("approve", **words)
    minion.opts["azure_events"]["allow_paths"] = True
    minion.reload()
    assert minion.call("approve", **words)["warnings"] == []
    del minion.opts["azure_events"]["allow_paths"]
    assert as_salt_call(minion).call("approve", **words)["warnings"] == []


def test_errors_quote_a_policy_file_for_salt_call_only(minion: Minion, tmp_path: Path) -> None:
    secret = tmp_path / "shadow"
    minion.opts["azure_events"]["allow_paths"] = True
    minion.reload()
    for content in (
        "root:$6$secret:1::",
        "rules: [{when: {secret: 1}, approve: now}]",
        "\tsecret",
        "secret: [",
        "!!python/secret x",
    ):
        secret.write_text(content)
        with pytest.raises(SaltInvocationError, match="is not a policy") as refused:
            minion.call("approve", policy_file=str(secret))
        assert "secret" not in str(refused.value)
    secret.write_text("rules: [{when: {tipe: Freeze}, approve: now}]")
    with pytest.raises(SaltInvocationError, match="did you mean type"):
        as_salt_call(minion).call("approve", policy_file=str(secret))


def test_policy_file_is_a_regular_file_of_bounded_size(minion: Minion, tmp_path: Path) -> None:
    as_salt_call(minion)
    (tmp_path / "large").write_bytes(b"#" * (1024 * 1024 + 1))
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    cases = [
        ("nul" if sys.platform == "win32" else "/dev/zero", "not a regular file"),
        (tmp_path, "not a regular file|cannot be read: (Is a directory|Permission denied)"),
        (tmp_path / "large", "a policy of more than 64 KiB"),
        (tmp_path / "bytes", "not UTF-8"),
        (tmp_path / "none", "No such file"),
    ]
    if sys.platform != "win32":
        os.mkfifo(tmp_path / "pipe")
        cases.append((tmp_path / "pipe", "not a regular file"))
    for path, complaint in cases:
        with pytest.raises(SaltInvocationError, match=complaint):
            minion.call("approve", policy_file=str(path))


def test_proxy_minion_is_refused(minion: Minion) -> None:
    minion.opts["proxy"] = {"proxytype": "dummy"}
    minion.reload()
    assert "azure_events.list" not in minion.functions
    assert "proxy minion" in minion.functions.missing_fun_string("azure_events.list")


def test_configuration_of_the_minion_comes_before_its_pillar(tmp_path: Path, azure: Azure) -> None:
    minion = Minion(tmp_path, azure.endpoints["vm1"])
    minion.opts["pillar"] = {"azure_events": {"endpoint": "http://127.0.0.1:9", "resource_name": "vm2"}}
    functions = minion_mods(minion.opts)
    azure.announce("vm2")
    found = functions["azure_events.list"]()
    assert (found["resource_name"], len(found["events"])) == ("vm2", 1)
