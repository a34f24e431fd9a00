# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""What a process of the daemon knows about a hook that another one has begun as a child."""

from __future__ import annotations

import pytest

from azure_scheduled_events.document import EventDocument
from hook_runner.clock import ServerClock
from hook_runner.config.settings import Settings
from hook_runner.hooks.discovery import Hook
from hook_runner.hooks.runs import HookRuns
from hook_runner.hooks.systemd import Systemd
from hook_runner.record_store import RecordStore
from hook_runner.records import INTERRUPTED
from hook_runner.runner import Runner
from support.daemon.killed_at_change import START, killed_before
from support.daemon.machine_driver import EPOCH, event
from support.daemon.runs_harness import RunsHarness, marked
from support.wait import wait_until

WRITE = "write state/maintenance.json"
# a file system that takes no file, as a full /run
FULL = "/proc"


@pytest.fixture
def in_units() -> bool:
    return True


def process(runs: RunsHarness, hook: Hook, at: list[float]) -> Runner:
    """Return what a process begins with, on a host with systemd and a full /run."""
    settings = Settings(
        resource_name="vm1",
        hooks_directory=str(runs.folder / "hooks.d"),
        state_directory=str(runs.folder / "state"),
        environment={"MARK": runs.mark},
    )
    store = RecordStore(settings.state_directory, "boot-1", print)
    store.load()
    hook_runs = HookRuns(FULL, settings, lambda: at[0], Systemd(str(runs.systemd.folder)))
    clock = ServerClock(lambda: at[0], lambda: EPOCH)
    return Runner(settings, {"prepare": (hook,)}, store, hook_runs, clock, lambda event: None)


@pytest.mark.parametrize(
    ("change", "number", "states", "has_run"),
    [
        (WRITE, 2, [], False),  # before the hook is noted as starting
        (WRITE, 3, [], False),  # before it is noted as running
        (START, 1, [INTERRUPTED], False),
        (WRITE, 4, [INTERRUPTED], True),  # before its result is noted
    ],
)
def test_child_was_interrupted_if_it_may_have_begun_before_the_daemon_was_killed(
    runs: RunsHarness, change: str, number: int, states: list[str], has_run: bool
) -> None:
    hook, at = runs.hook(f"echo ran >{runs.folder}/ran\n"), [0.0]

    def live() -> None:
        runner = process(runs, hook, at)
        runner.observe(EventDocument(1, (event(),), (), sent_at=0.0, sent_by=0.0))
        assert runner.waiting_for == "room in /run"
        at[0] = 60.0
        wait_until(runner.tick, "the kill")

    assert killed_before(number, {change}, runs.folder, live) == change
    wait_until(lambda: not marked(runs.mark), "the end of the hook")
    maintenance = process(runs, hook, at).records.maintenance
    found = [run.state for run in maintenance.runs] if maintenance else []
    assert (found, (runs.folder / "ran").exists()) == (states, has_run)
