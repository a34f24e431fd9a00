# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Whole lives of an event whose files are damaged under the daemon, which is killed a moment later."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.daemon.hook_scripts import HANGS
from support.daemon.simulated_azure import Azure

pytestmark = pytest.mark.all

# seconds before each poll of an event without faults: announced, prepared, approved, started, over,
# recovered from
POLLS = (0, 1, 1, 120, 61, 1)


def replace_by_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


DAMAGE: dict[str, Callable[[Path], object]] = {
    "emptied": lambda path: path.write_bytes(b""),
    "cut": lambda path: path.write_bytes(path.read_bytes()[:200]),
    "overwritten": lambda path: path.write_bytes(b"not a record\n" * 999),
    "later version": lambda path: path.write_text('{"version": 99}'),
    "replaced by a folder": replace_by_folder,
}


@pytest.mark.parametrize("damage", list(DAMAGE))
@pytest.mark.parametrize("stage", range(1, len(POLLS)))
def test_event_whose_record_is_damaged_is_recovered(
    damage: str, stage: int, azure: Azure, make_vm: Callable[..., Any]
) -> None:
    harness = make_vm()
    for hook in ("prepare/10-a", "prepare/20-b", "recover/10-a", "recover/30-c"):
        harness.hook(hook)
    event = azure.schedule("Reboot", notice=120, started_for=60)
    for number, after in enumerate(POLLS):
        harness.poll(after=after)
        if number == stage:
            for path in harness.folder.glob("state/**/*.json"):
                DAMAGE[damage](path)
            harness.restart("kill")
    harness.poll(after=1)
    ran = harness.ran()
    last_prepared = max(number for number, hook in enumerate(ran) if hook.startswith("prepare/"))
    assert set(ran[last_prepared + 1 :]) == {"recover/10-a", "recover/30-c"}
    assert not [hook for hook in ran[:last_prepared] if hook.startswith("recover/")]
    assert set(azure.approvals()) == {("vm1", event)}
    assert harness.runner.records.maintenance is None and harness.store.error is None


def test_file_that_is_damaged_under_a_running_daemon_is_replaced_by_the_next_write(
    azure: Azure, make_vm: Callable[..., Any]
) -> None:
    harness = make_vm()
    harness.hook("prepare/10-a", HANGS)
    event = azure.schedule("Reboot", hold=True)
    harness.poll()
    for path in harness.folder.glob("state/**/*.json"):
        path.write_bytes(b"")
    harness.release("prepare/10-a")
    harness.settle()
    harness.restart("kill")
    harness.poll(after=1)
    assert harness.steps(event) == [("prepare/10-a", "ok")] and azure.approvals() == [("vm1", event)]
