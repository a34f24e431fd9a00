# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Ready hooks as steps: their order, their limits, what a kill leaves, and the findings of ``check``."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from support.salt.azure import Azure
from support.salt.hook_tree import HookTree
from support.salt.job_process import JobProcess
from support.salt.scripted import ScriptedImds
from support.salt.steps_minion import StepsMinion
from support.wait import wait_until

if sys.platform == "win32":
    pytest.skip("ready hooks run on Linux only", allow_module_level=True)


def steps_of(answer: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [(step["name"], step["kind"], step["outcome"]) for step in answer["steps"]]


def test_hooks_prepare_in_their_order_and_recover_in_reverse(hooked: StepsMinion, tree: HookTree, azure: Azure) -> None:
    own = {
        verb: [{"name": verb, "command": f"echo own {verb} >> {tree.folder}/ran"}] for verb in ("prepare", "recover")
    }
    hooked.configure(ready_hooks=[tree.hook(name="a"), tree.hook(name="b", settings={"timeout": "2m"})], **own)
    event_id = azure.announce("vm1")
    answer = hooked.call("prepare", event_id)
    assert steps_of(answer) == [("a", "use", "done"), ("b", "use", "done"), ("prepare", "command", "done")], answer
    assert hooked.prepare(event_id) == "already_prepared"
    azure.end(event_id)
    answer = hooked.call("recover", event_id)
    assert steps_of(answer) == [("recover", "command", "done"), ("b", "use", "done"), ("a", "use", "done")], answer
    assert tree.ran == ["a prepare", "b prepare", "own prepare", "own recover", "b recover", "a recover"]
    assert tree.lines[1] == "b prepare prepare 120" and tree.lines[-1] == "a recover recover 300"


def test_hook_is_a_step_of_one_list(hooked: StepsMinion, tree: HookTree, azure: Azure) -> None:
    hooked.configure(prepare=["true", tree.hook(settings={"timeout": "2m"})], recover=[tree.hook(), "true"])
    event_id = azure.announce("vm1")
    assert hooked.prepare(event_id) == "prepared"
    azure.end(event_id)
    assert hooked.recover(event_id) == "recovered"
    assert tree.lines == ["command prepare prepare 120", "command recover recover 300"]


def test_dry_run_runs_and_transfers_nothing(hooked: StepsMinion, tree: HookTree, azure: Azure) -> None:
    hooked.configure(ready_hooks=[tree.hook()])
    answer = hooked.call("prepare", azure.announce("vm1"), test=True)
    assert (answer["outcome"], steps_of(answer)) == ("would_prepare", [("command", "use", "would_run")])
    assert tree.ran == [] and hooked.hook_copies == []


def test_hook_gets_its_time_limit_and_its_message_is_in_the_answer(
    hooked: StepsMinion, tree: HookTree, azure: Azure
) -> None:
    never = str(tree.folder / "never")
    hooked.configure(ready_hooks=[tree.hook(wait_for=never, wait=0, settings={"timeout": 5})])
    event_id = azure.announce("vm1")
    answer = hooked.call("prepare", event_id)
    (step,) = answer["steps"]
    assert (step["outcome"], step["kind"]) == ("failed", "use") and "it does not exist" in step["output"]
    azure.end(event_id)
    assert hooked.recover(event_id) == "recovered"
    assert tree.lines == ["command prepare prepare 5", "command recover recover 5"]


def test_hook_ignores_the_variables_of_python(
    hooked: StepsMinion, tree: HookTree, azure: Azure, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('a module of another user')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    hooked.configure(ready_hooks=[tree.hook()])
    assert hooked.prepare(azure.announce("vm1")) == "prepared" and tree.ran == ["command prepare"]


def test_killed_preparation_is_undone(hooked: StepsMinion, tree: HookTree, azure: Azure) -> None:
    go = tree.folder / "go"
    hooked.configure(ready_hooks=[tree.hook(wait_for=str(go))])
    event_id = azure.announce("vm1")
    with JobProcess(hooked, "prepare", event_id) as running:
        wait_until(lambda: tree.ran == ["command prepare"], "the hook at work")
        running.kill()
    wait_until(lambda: hooked.call("status")["working"] is None, "the end of the killed job")
    azure.end(event_id)
    assert hooked.recover(event_id) == "recovered"
    assert tree.ran == ["command prepare", "command recover"]


def test_command_gets_its_time_limit_and_the_time_left(minion: StepsMinion, azure: Azure, tmp_path: Path) -> None:
    minion.configure(
        prepare=[{"command": f"echo $HOOK_SECONDS $EVENT_SECONDS_LEFT >> {tmp_path}/env", "timeout": "90s"}],
        recover=[f"echo $HOOK_SECONDS-$EVENT_SECONDS_LEFT >> {tmp_path}/env"],
    )
    event_id = azure.announce("vm1", notice="2h")
    assert minion.prepare(event_id) == "prepared"
    azure.end(event_id)
    assert minion.recover(event_id) == "recovered"
    first, second = (tmp_path / "env").read_text().splitlines()
    limit, left = map(int, first.split())
    assert limit == 90 and 7000 < left <= 7200
    assert second == "300-"


def test_time_limit_of_a_step_is_never_more_than_the_time_left(tmp_path: Path, scripted: ScriptedImds) -> None:
    """A hook must not plan five minutes for an eviction in 25 s; five seconds are left for the rest."""
    starts = datetime.now(UTC) + timedelta(seconds=25)
    scripted.events = [
        {**scripted.event("A", "vm1", kind="Preempt"), "NotBefore": starts.strftime("%a, %d %b %Y %H:%M:%S GMT")}
    ]
    minion = StepsMinion(tmp_path, scripted.endpoint)
    minion.configure(prepare=[f"echo $HOOK_SECONDS $EVENT_SECONDS_LEFT > {tmp_path}/env"])
    assert minion.prepare("A") == "prepared"
    limit, left = map(int, (tmp_path / "env").read_text().split())
    assert 0 < limit <= left - 5, (limit, left)


def test_check_has_the_findings_of_each_hook_once(hooked: StepsMinion, tree: HookTree) -> None:
    missing = str(tree.folder / "no" / "file")
    hooked.configure(
        ready_hooks=[
            tree.hook(name="good"),
            tree.hook(name="doubtful", warn=True),
            tree.hook(name="bad", file=missing),
        ],
        prepare=["true", tree.hook(name="unknown", fil="x")],
    )
    answer = hooked.call("check")
    assert (answer["version"], answer["outcome"]) == (1, "failed") and "bad, unknown" in answer["reason"]
    assert [(step["name"], step["use"], step["lists"], step["outcome"]) for step in answer["steps"]] == [
        ("good", "command", ["prepare", "recover"], "ok"),
        ("doubtful", "command", ["prepare", "recover"], "warning"),
        ("bad", "command", ["prepare", "recover"], "error"),
        ("unknown", "command", ["prepare"], "error"),
    ]
    good, doubtful, bad, unknown = answer["steps"]
    assert good["problems"] == [] and "it exists" in good["information"][0]
    assert doubtful["problems"] == ["doubtful: a warning"]
    assert "no such folder" in bad["problems"][0]
    assert "did you mean file?" in unknown["problems"][0]
    assert tree.ran == []


def test_check_reports_a_preparation_that_no_step_undoes(hooked: StepsMinion, tree: HookTree, tmp_path: Path) -> None:
    (tmp_path / "records").mkdir()
    for name, use in (("kept", "command"), ("removed", "haproxy"), ("log", "log")):
        (tmp_path / "records" / f"{name}.json").write_text(json.dumps({"use": use}))
    hooked.configure(ready_hooks=[tree.hook(name="kept")])
    answer = hooked.call("check")
    assert answer["outcome"] == "failed"
    (line,) = answer["records"]
    assert line.startswith(str(tmp_path / "records" / "removed.json") + ": the ready hook haproxy has prepared")


def test_check_without_hooks_is_ready(minion: StepsMinion) -> None:
    assert minion.call("check") == {
        "version": 1,
        "outcome": "ready",
        "reason": "no step is a ready hook",
        "steps": [],
        "records": [],
    }
    assert minion.hook_copies == []
