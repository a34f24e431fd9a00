# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The files of the ready hooks on a minion: with and without its master, damaged, private."""

from __future__ import annotations

import errno
import os
import shutil
import sys
import time
from pathlib import Path

import pytest

from azure_events_steps.hook_files import HookFiles
from support.salt.azure import Azure
from support.salt.hook_tree import HOOKS, HookTree
from support.salt.steps_minion import StepsMinion

if sys.platform == "win32":
    pytest.skip("ready hooks run on Linux only", allow_module_level=True)


@pytest.mark.parametrize("left", ["nothing", "another version", "half a file"])
def test_recovery_without_the_master_runs_the_files_of_the_preparation(
    hooked: StepsMinion, tree: HookTree, azure: Azure, left: str
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


def test_preparation_without_the_master_runs_the_copy(hooked: StepsMinion, tree: HookTree, azure: Azure) -> None:
    hooked.configure(ready_hooks=[tree.hook()])
    assert hooked.call("check")["outcome"] == "ready"
    shutil.rmtree(tree.root)
    assert hooked.prepare(azure.announce("vm1")) == "prepared"
    assert tree.ran == ["command prepare"]


def test_preparation_uses_the_present_files_of_the_master(hooked: StepsMinion, tree: HookTree, azure: Azure) -> None:
    hooked.configure(ready_hooks=[tree.hook()])
    probe = tree.root / HOOKS / "hooks" / "command.py"
    text, found = probe.read_text(), []
    for number in range(4):
        probe.write_text(text.replace('"prepare"', f'"x{number}"'))
        event_id = azure.announce("vm1")
        assert hooked.prepare(event_id) == "prepared"
        azure.end(event_id)
        assert hooked.recover(event_id) == "recovered"
        found.append([path.name for path in hooked.hook_copies])
    assert [line for line in tree.ran if "recover" not in line] == [f"command x{number}" for number in range(4)]
    # the version of a job that may still run stays
    assert [len(names) for names in found] == [1, 2, 2, 2]


@pytest.mark.parametrize("damage", ["empty", "removed", "changed"])
def test_damaged_copy_is_not_run_but_transferred_again(
    hooked: StepsMinion, tree: HookTree, azure: Azure, damage: str
) -> None:
    """``saltutil.clear_cache`` removes all files of the cache, too."""
    hooked.configure(ready_hooks=[tree.hook()])
    event_id = azure.announce("vm1")
    assert hooked.prepare(event_id) == "prepared"
    (copy,) = hooked.hook_copies
    if damage == "empty":
        for file in copy.rglob("*.py"):
            file.unlink()
    elif damage == "removed":
        shutil.rmtree(copy)
    else:
        (copy / "ready_hooks" / "cli.py").write_text("raise SystemExit(3)\n")
    azure.end(event_id)
    assert hooked.recover(event_id) == "recovered"
    assert hooked.hook_copies == [copy] and tree.ran == ["command prepare", "command recover"]


def test_minion_that_never_had_the_files_fails_and_says_why(hooked: StepsMinion, tree: HookTree, azure: Azure) -> None:
    shutil.rmtree(tree.root)
    hooked.configure(ready_hooks=[tree.hook()])
    event_id = azure.announce("vm1")
    answer = hooked.call("prepare", event_id)
    assert answer["outcome"] == "failed" and "file roots lack azure_events/hooks" in answer["reason"]
    assert hooked.call("check")["outcome"] == "failed"


def test_transfer_that_fails_leaves_nothing(
    hooked: StepsMinion, tree: HookTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A later one removes what a killed one has left."""
    hooked.configure(ready_hooks=[tree.hook()])
    (hooked.cachedir / "azure_events" / "hooks-new" / "ready_hooks").mkdir(parents=True)

    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as disk:
        disk.setattr(os, "fsync", full)
        assert "No space left" in hooked.call("check")["reason"]
    assert hooked.hook_copies == []
    assert hooked.call("check")["outcome"] == "ready"


def test_copy_is_private(hooked: StepsMinion, tree: HookTree) -> None:
    hooked.configure(ready_hooks=[tree.hook()])
    hooked.call("check")
    (copy,) = hooked.hook_copies
    assert [path for path in (copy.parent, copy, *copy.rglob("*")) if path.stat().st_mode & 0o077] == []


def test_transfer_from_a_master_that_does_not_answer_ends_in_time(
    hooked: StepsMinion, tree: HookTree, tmp_path: Path
) -> None:
    hooked.configure(ready_hooks=[tree.hook()])
    hooked.call("check")
    cachedir = str(hooked.cachedir)

    def never() -> dict[str, str]:
        (tmp_path / "pid").write_text(str(os.getpid()))
        time.sleep(300)
        return {}

    files = HookFiles(cachedir, str(tmp_path), never, refresh_timeout=0.5)
    began = time.monotonic()
    assert "ended after 0.5 seconds" in files.refresh()
    assert time.monotonic() - began < 30
    assert files.find() == str(hooked.hook_copies[0] / "ready_hooks")
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)
