# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A minion with the ready hooks of this checkout in its master's file root."""

from __future__ import annotations

from pathlib import Path

import pytest

from azure_events_steps import hook_records
from support.salt.hook_tree import HookTree
from support.salt.steps_minion import StepsMinion


@pytest.fixture(autouse=True)
def own_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The records of this machine do not matter."""
    monkeypatch.setattr(hook_records, "FOLDER", str(tmp_path / "records"))


@pytest.fixture
def tree(tmp_path: Path) -> HookTree:
    return HookTree(tmp_path)


@pytest.fixture
def hooked(minion: StepsMinion, tree: HookTree) -> StepsMinion:
    """A minion whose file root has the ready hooks, and without steps."""
    del minion.section["prepare"], minion.section["recover"]
    minion.file_root = tree.root
    return minion
