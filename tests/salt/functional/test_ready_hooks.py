# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Ready hooks from a master's file root, transferred by Salt's file client."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from azure_events_steps import hook_records
from support.salt.azure import Azure
from support.salt.hook_tree import HookTree
from support.salt.loaded import CountingMinion

if sys.platform == "win32":
    pytest.skip("ready hooks run on Linux only", allow_module_level=True)


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


def steps_of(answer: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [(step["name"], step["kind"], step["outcome"]) for step in answer["steps"]]


def test_hooks_prepare_in_their_order_and_recover_in_reverse(
    hooked: CountingMinion, tree: HookTree, azure: Azure
) -> None:
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


def test_minion_that_never_had_the_files_fails_and_says_why(
    hooked: CountingMinion, tree: HookTree, azure: Azure
) -> None:
    shutil.rmtree(tree.root)
    hooked.configure(ready_hooks=[tree.hook()])
    event_id = azure.announce("vm1")
    answer = hooked.call("prepare", event_id)
    assert answer["outcome"] == "failed" and "file roots lack azure_events/hooks" in answer["reason"]
    assert hooked.call("check")["outcome"] == "failed"


def test_check_of_an_invalid_configuration_fails(counting: CountingMinion) -> None:
    counting.configure(ready_hooks=[{"use": "haproxi"}])
    assert "did you mean haproxy" in counting.call("check")["reason"]
