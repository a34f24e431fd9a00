# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from support.salt.hook_tree import HookTree
from support.salt.steps_minion import StepsMinion

if sys.platform == "win32":
    pytest.skip("ready hooks run on Linux only", allow_module_level=True)


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
