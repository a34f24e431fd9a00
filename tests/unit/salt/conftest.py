# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A simulated Azure, an IMDS with answers that a test sets, and a minion without Salt."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from azure_events_steps import hook_records
from support.salt.azure import Azure, simulated
from support.salt.hook_tree import HookTree
from support.salt.scripted import ScriptedImds
from support.salt.steps_minion import StepsMinion


@pytest.fixture(scope="session")
def running_azure() -> Iterator[Azure]:
    with simulated({"web": {"kind": "availability_set", "vms": {"vm1": {}, "vm2": {}}}}) as running:
        yield running


@pytest.fixture
def azure(running_azure: Azure) -> Iterator[Azure]:
    """Without events, before and after the test."""
    yield running_azure
    running_azure.end_all()


@pytest.fixture
def scripted() -> Iterator[ScriptedImds]:
    with ScriptedImds() as imds:
        yield imds


@pytest.fixture
def minion(tmp_path: Path, azure: Azure) -> StepsMinion:
    return StepsMinion(tmp_path, azure.endpoints["vm1"])


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
