# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Ready hooks as steps: their order, their files, their check, and a minion without its master."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from azure_events_steps import hook_records
from azure_events_steps.configuration import parse_configuration
from azure_events_steps.hook_files import HookFiles
from support.salt.azure import Azure
from support.salt.hook_tree import HOOKS, HookTree
from support.salt.loaded import CountingMinion
from support.wait import wait_until

if sys.platform == "win32":
    pytest.skip("ready hooks run on Linux only", allow_module_level=True)

FORK = multiprocessing.get_context("fork")


@pytest.fixture(autouse=True)
def own_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The records of this machine do not matter."""
    monkeypatch.setattr(hook_records, "FOLDER", str(tmp_path / "records"))


@pytest.fixture
def tree(tmp_path: Path) -> HookTree:
    return HookTree(tmp_path)


@pytest.fixture
def hooked(counting: CountingMinion, tree: HookTree) -> CountingMinion:
    """A minion whose file root has the ready hooks, and without steps."""
    del counting.opts["azure_events"]["prepare"], counting.opts["azure_events"]["recover"]
    with_file_root(counting, tree.root)
    return counting


def with_file_root(minion: CountingMinion, root: Path) -> None:
    minion.opts["file_roots"] = {"base": [str(root)]}
    minion.reload()


def copies(minion: CountingMinion) -> list[Path]:
    return sorted(path for path in Path(minion.opts["cachedir"], "azure_events").glob("hooks-*") if path.is_dir())


def steps_of(answer: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [(step["name"], step["kind"], step["outcome"]) for step in answer["steps"]]


def test_hooks_prepare_in_their_order_and_recover_in_reverse(
    hooked: CountingMinion, tree: HookTree, azure: Azure
) -> None:
    own = {
        verb: [{"name": verb, "command": f"echo own {verb} >> {tree.folder}/ran"}] for verb in ("prepare", "recover")
    }
    hooked.configure(ready_hooks=[tree.hook(name="a"), tree.hook(name="b", timeout="2m")], **own)
    event_id = azure.announce("vm1")
    answer = hooked.call("prepare", event_id)
    assert steps_of(answer) == [("a", "use", "done"), ("b", "use", "done"), ("prepare", "command", "done")], answer
    assert hooked.prepare(event_id) == "already_prepared"
    azure.end(event_id)
    answer = hooked.call("recover", event_id)
    assert steps_of(answer) == [("recover", "command", "done"), ("b", "use", "done"), ("a", "use", "done")], answer
    assert tree.ran == ["a prepare", "b prepare", "own prepare", "own recover", "b recover", "a recover"]
    assert tree.lines[1] == "b prepare prepare 120" and tree.lines[-1] == "a recover recover 300"


def test_minion_with_ready_hooks_only_is_prepared_and_recovered(
    hooked: CountingMinion, tree: HookTree, azure: Azure
) -> None:
    hooked.configure(ready_hooks=[tree.hook()])
    event_id = azure.announce("vm1")
    assert hooked.prepare(event_id) == "prepared"
    azure.end(event_id)
    assert hooked.recover(event_id) == "recovered"
    assert tree.ran == ["command prepare", "command recover"]


def test_hook_is_a_step_of_one_list(hooked: CountingMinion, tree: HookTree, azure: Azure) -> None:
    hooked.configure(prepare=["true", tree.hook(settings={"timeout": "2m"})], recover=[tree.hook(), "true"])
    event_id = azure.announce("vm1")
    assert hooked.prepare(event_id) == "prepared"
    azure.end(event_id)
    assert hooked.recover(event_id) == "recovered"
    assert tree.lines == ["command prepare prepare 120", "command recover recover 300"]


def test_dry_run_runs_and_transfers_nothing(hooked: CountingMinion, tree: HookTree, azure: Azure) -> None:
    hooked.configure(ready_hooks=[tree.hook()])
    answer = hooked.call("prepare", azure.announce("vm1"), test=True)
    assert (answer["outcome"], steps_of(answer)) == ("would_prepare", [("command", "use", "would_run")])
    assert tree.ran == [] and copies(hooked) == []


def test_second_event_runs_no_hook_again(hooked: CountingMinion, tree: HookTree, azure: Azure) -> None:
    hooked.configure(ready_hooks=[tree.hook()])
    first, second = azure.announce("vm1"), azure.announce("vm1", kind="Freeze")
    assert [hooked.prepare(first), hooked.prepare(second)] == ["prepared", "prepared"]
    azure.end(first)
    assert hooked.recover(first) == "still_listed"
    azure.end(second)
    assert hooked.recover(second) == "recovered"
    assert tree.ran == ["command prepare", "command recover"]


@pytest.mark.parametrize("left", ["nothing", "another version", "half a file"])
def test_recovery_without_the_master_runs_the_files_of_the_preparation(
    hooked: CountingMinion, tree: HookTree, azure: Azure, left: str
) -> None:
    """New files on the master count for the next preparation only."""
    hooked.configure(ready_hooks=[tree.hook()])
    event_id = azure.announce("vm1")
    assert hooked.prepare(event_id) == "prepared"
    if left == "nothing":
        shutil.rmtree(tree.root)
    else:
        (tree.root / HOOKS / "cli.py").write_text("raise SystemExit(3)\n" if left == "another version" else "def")
    azure.end(event_id)
    assert hooked.recover(event_id) == "recovered"
    assert tree.ran == ["command prepare", "command recover"]


def test_preparation_without_the_master_runs_the_copy(hooked: CountingMinion, tree: HookTree, azure: Azure) -> None:
    hooked.configure(ready_hooks=[tree.hook()])
    assert hooked.call("check")["outcome"] == "ready"
    shutil.rmtree(tree.root)
    assert hooked.prepare(azure.announce("vm1")) == "prepared"
    assert tree.ran == ["command prepare"]


def test_preparation_uses_the_present_files_of_the_master(hooked: CountingMinion, tree: HookTree, azure: Azure) -> None:
    hooked.configure(ready_hooks=[tree.hook()])
    probe = tree.root / HOOKS / "hooks" / "command.py"
    text, found = probe.read_text(), []
    for number in range(4):
        probe.write_text(text.replace('"prepare"', f'"x{number}"'))
        event_id = azure.announce("vm1")
        assert hooked.prepare(event_id) == "prepared"
        azure.end(event_id)
        assert hooked.recover(event_id) == "recovered"
        found.append([path.name for path in copies(hooked)])
    assert [line for line in tree.ran if "recover" not in line] == [f"command x{number}" for number in range(4)]
    # the version of a job that may still run stays
    assert [len(names) for names in found] == [1, 2, 2, 2]


@pytest.mark.parametrize("damage", ["empty", "removed", "changed"])
def test_damaged_copy_is_not_run_but_transferred_again(
    hooked: CountingMinion, tree: HookTree, azure: Azure, damage: str
) -> None:
    """``saltutil.clear_cache`` removes all files of the cache, too."""
    hooked.configure(ready_hooks=[tree.hook()])
    event_id = azure.announce("vm1")
    assert hooked.prepare(event_id) == "prepared"
    (copy,) = copies(hooked)
    if damage == "empty":
        for file in copy.rglob("*.py"):
            file.unlink()
    elif damage == "removed":
        shutil.rmtree(copy)
    else:
        (copy / "ready_hooks" / "cli.py").write_text("raise SystemExit(3)\n")
    azure.end(event_id)
    assert hooked.recover(event_id) == "recovered"
    assert copies(hooked) == [copy] and tree.ran == ["command prepare", "command recover"]


def test_minion_that_never_had_the_files_fails_and_says_why(
    hooked: CountingMinion, tree: HookTree, azure: Azure
) -> None:
    shutil.rmtree(tree.root)
    hooked.configure(ready_hooks=[tree.hook()])
    event_id = azure.announce("vm1")
    answer = hooked.call("prepare", event_id)
    assert answer["outcome"] == "failed" and "file roots lack azure_events/hooks" in answer["reason"]
    assert hooked.call("check")["outcome"] == "failed"


def test_copy_is_private(hooked: CountingMinion, tree: HookTree) -> None:
    hooked.configure(ready_hooks=[tree.hook()])
    hooked.call("check")
    (copy,) = copies(hooked)
    assert [path for path in (copy.parent, copy, *copy.rglob("*")) if path.stat().st_mode & 0o077] == []


def test_hook_gets_its_time_limit_and_ends_itself(hooked: CountingMinion, tree: HookTree, azure: Azure) -> None:
    never = str(tree.folder / "never")
    hooked.configure(ready_hooks=[tree.hook(wait_for=never, timeout=10)])
    event_id = azure.announce("vm1")
    answer = hooked.call("prepare", event_id)
    (step,) = answer["steps"]
    # it ends with its own message, before the step's time limit
    assert (step["outcome"], step["kind"]) == ("failed", "use") and "it does not exist" in step["output"]
    azure.end(event_id)
    assert hooked.recover(event_id) == "recovered"
    assert tree.ran == ["command prepare", "command recover"]


def test_killed_preparation_is_undone(hooked: CountingMinion, tree: HookTree, azure: Azure) -> None:
    go = tree.folder / "go"
    hooked.configure(ready_hooks=[tree.hook(wait_for=str(go))])
    event_id = azure.announce("vm1")
    process = FORK.Process(target=lambda: hooked.call("prepare", event_id))
    process.start()
    wait_until(lambda: tree.ran == ["command prepare"], "the hook at work")
    os.kill(process.pid or 0, signal.SIGKILL)
    process.join(30)
    wait_until(lambda: hooked.call("status")["working"] is None, "the end of the killed job")
    azure.end(event_id)
    assert hooked.recover(event_id) == "recovered"
    assert tree.ran == ["command prepare", "command recover"]


def test_command_gets_its_time_limit_and_the_time_left(counting: CountingMinion, azure: Azure, tmp_path: Path) -> None:
    counting.configure(
        prepare=[{"command": f"echo $HOOK_SECONDS $EVENT_SECONDS_LEFT >> {tmp_path}/env", "timeout": "90s"}],
        recover=[f"echo $HOOK_SECONDS-$EVENT_SECONDS_LEFT >> {tmp_path}/env"],
    )
    event_id = azure.announce("vm1", notice="2h")
    assert counting.prepare(event_id) == "prepared"
    azure.end(event_id)
    assert counting.recover(event_id) == "recovered"
    first, second = (tmp_path / "env").read_text().splitlines()
    limit, left = map(int, first.split())
    assert limit == 90 and 7000 < left <= 7200
    assert second == "300-"


def test_check_has_the_findings_of_each_hook_once(hooked: CountingMinion, tree: HookTree) -> None:
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


def test_timeout_beside_that_of_the_settings_is_refused() -> None:
    with pytest.raises(ValueError, match="timeout: it is set twice"):
        parse_configuration({"prepare": [{"use": "notify", "timeout": "3s", "settings": {"timeout": "1m"}}]})


def test_check_reports_a_preparation_that_no_step_undoes(
    hooked: CountingMinion, tree: HookTree, tmp_path: Path
) -> None:
    (tmp_path / "records").mkdir()
    for name, use in (("kept", "command"), ("removed", "haproxy"), ("log", "log")):
        (tmp_path / "records" / f"{name}.json").write_text(json.dumps({"use": use}))
    hooked.configure(ready_hooks=[tree.hook(name="kept")])
    answer = hooked.call("check")
    assert answer["outcome"] == "failed"
    (line,) = answer["records"]
    assert line.startswith(str(tmp_path / "records" / "removed.json") + ": the ready hook haproxy has prepared")


def test_check_without_hooks_is_ready(counting: CountingMinion) -> None:
    assert counting.call("check") == {
        "version": 1,
        "outcome": "ready",
        "reason": "no step is a ready hook",
        "steps": [],
        "records": [],
    }
    assert copies(counting) == []


def test_check_of_an_invalid_configuration_fails(counting: CountingMinion) -> None:
    counting.configure(ready_hooks=[{"use": "haproxi"}])
    assert "did you mean haproxy" in counting.call("check")["reason"]


@pytest.mark.parametrize(
    ("section", "text"),
    [
        ({"ready_hooks": [{"use": "haproxi"}]}, "ready_hooks: step 1: use: there is no ready hook 'haproxi'; did you"),
        ({"prepare": [{"use": None}]}, "prepare: step 1: use"),
        ({"ready_hooks": [{"use": "log"}, {"use": "log"}]}, "prepare: two ready hooks have the name 'log'"),
        ({"ready_hooks": [{"use": "log"}], "recover": [{"use": "log"}]}, "recover: two ready hooks"),
        ({"ready_hooks": ["true"]}, "ready_hooks: step 1: expected a mapping with use"),
        ({"ready_hooks": {"use": "log"}}, "ready_hooks: expected a list"),
        ({"prepare": [{"use": "log", "name": "../x"}]}, "name: expected at most 80"),
        ({"prepare": [{"use": "log", "settings": {"types": ["Reboot"]}}]}, "settings.types: in Salt"),
        ({"prepare": [{"use": "log", "settings": "1m"}]}, "settings: expected a mapping"),
        ({"prepare": [{"use": "log", "settings": {"timeout": "soon"}, "timeout": 1}]}, "timeout"),
        ({"prepare": [{"use": "log", "timeout": "soon"}]}, "timeout"),
        ({"prepare": [{"use": "log", "file": {1, 2}}]}, "file: expected numbers"),
        ({"prepare": [{"use": "log", "file": "x" * 10000}]}, "file: expected at most"),
        ({"prepare": [{"use": "log", 3: "x"}]}, "as name of an option"),
    ],
)
def test_invalid_configuration_is_refused(
    counting: CountingMinion, azure: Azure, section: dict[str, Any], text: str
) -> None:
    counting.configure(**section)
    answer = counting.call("prepare", azure.announce("vm1"))
    assert answer["outcome"] == "failed" and text in answer["reason"], answer
    assert counting.ran == []


def test_transfer_from_a_master_that_does_not_answer_ends_in_time(
    hooked: CountingMinion, tree: HookTree, tmp_path: Path
) -> None:
    hooked.configure(ready_hooks=[tree.hook()])
    hooked.call("check")
    cachedir = hooked.opts["cachedir"]

    def never() -> dict[str, str]:
        (tmp_path / "pid").write_text(str(os.getpid()))
        time.sleep(300)
        return {}

    files = HookFiles(cachedir, str(tmp_path), never, refresh_timeout=0.5)
    began = time.monotonic()
    assert "ended after 0.5 seconds" in files.refresh()
    assert time.monotonic() - began < 30
    assert files.find() == str(copies(hooked)[0] / "ready_hooks")
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)
