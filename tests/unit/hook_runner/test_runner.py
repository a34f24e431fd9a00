# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""What a process of the daemon knows about the hooks that another one has begun."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from azure_scheduled_events.document import EventDocument
from hook_runner.clock import ServerClock
from hook_runner.config.settings import Settings
from hook_runner.hooks.discovery import Hook
from hook_runner.hooks.runs import HookRuns
from hook_runner.hooks.systemd import Systemd
from hook_runner.imds_health import ImdsHealth
from hook_runner.maintenance.record import ApprovalRequest
from hook_runner.record_store import RecordStore
from hook_runner.records import INTERRUPTED, OK
from hook_runner.runner import Runner
from support.daemon.killed_at_change import REMOVE, START, killed_before
from support.daemon.machine_driver import EPOCH, event
from support.daemon.runs_harness import RunsHarness, marked
from support.daemon.small_disk import Disk
from support.wait import wait_until

WRITE = "write state/maintenance.json"
# a file system that takes no file, as a full /run
FULL = "/proc"


@pytest.fixture
def in_units() -> bool:
    return True


def process(runs: RunsHarness, hook: Hook, at: list[float], run_directory: str = FULL, **more: Any) -> Runner:
    """Return what a process begins with, on a host with systemd and by default a full /run."""
    settings = Settings(
        resource_name="vm1",
        hooks_directory=str(runs.folder / "hooks.d"),
        state_directory=str(runs.folder / "state"),
        environment={"MARK": runs.mark},
    )
    store = RecordStore(settings.state_directory, "boot-1", print)
    store.load()
    hook_runs = HookRuns(run_directory, lambda: at[0], Systemd(str(runs.systemd.folder)))
    clock = ServerClock(lambda: at[0], lambda: EPOCH)
    return Runner(settings, {hook.stage: (hook,)}, store, hook_runs, clock, ImdsHealth(), lambda event: None, **more)


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
        runner.document_received(EventDocument(1, (event(),), (), sent_at=0.0, sent_by=0.0))
        assert runner.waiting_for == "room in /run"
        at[0] = 60.0
        wait_until(runner.tick, "the kill")

    assert killed_before(number, {change}, runs.folder, live) == change
    wait_until(lambda: not marked(runs.mark), "the end of the hook")
    maintenance = process(runs, hook, at).records.maintenance
    found = [run.state for run in maintenance.runs] if maintenance else []
    assert (found, (runs.folder / "ran").exists()) == (states, has_run)


def rests(runner: Runner, at: list[float]) -> bool:
    """Return True if no maintenance is open one second later."""
    at[0] += 1.0
    runner.tick()
    return runner.records.maintenance is None


def test_configured_environment_may_change_the_usual_variables_but_not_the_events(runs: RunsHarness) -> None:
    given = runs.folder / "given"
    hook = runs.hook(f'echo "$PATH $EVENT_ID" >{given}.new; mv {given}.new {given}\n')
    runner = process(runs, hook, [0.0], str(runs.folder / "run"))
    environment = {"MARK": runs.mark, "PATH": "/bin:/usr/bin", "EVENT_ID": "no"}
    runner.reconfigure(runner.host.settings._replace(environment=environment), runner.host.hooks)
    runner.document_received(EventDocument(1, (event(),), (), sent_at=0.0, sent_by=0.0))
    runner.tick()
    wait_until(given.exists, "the hook")
    assert given.read_text() == "/bin:/usr/bin e1\n"


def test_unit_whose_result_the_records_have_is_ended(runs: RunsHarness) -> None:
    hook, at, folder = runs.hook(""), [0.0], str(runs.folder / "run")

    def live() -> None:
        runner = process(runs, hook, at, folder)
        runner.document_received(EventDocument(1, (event(),), (), sent_at=0.0, sent_by=0.0))
        wait_until(partial(rests, runner, at), "the kill")

    assert killed_before(1, {REMOVE}, runs.folder, live) == REMOVE and runs.systemd.units() != []
    runner = process(runs, hook, at, folder)
    maintenance = runner.records.maintenance
    assert maintenance is not None and not maintenance.may_lack_events
    assert [run.state for run in maintenance.runs] == [OK]
    wait_until(lambda: runner.runs.next_check_in() is None, "the end of the unit")
    assert runs.systemd.units() == runs.files() == []


def test_host_whose_disk_stays_full_recovers_once_however_often_the_daemon_starts(
    runs: RunsHarness, disk: Disk
) -> None:
    hook, at = runs.hook(f"echo ran >>{runs.folder}/ran\n")._replace(stage="recover"), [0.0]
    for is_incomplete in (False, True, True):
        runner = process(runs, hook, at, str(runs.folder / "run"))
        assert runner.store.is_incomplete is is_incomplete
        for _document in range(2):
            at[0] += 2.0
            runner.document_received(EventDocument(1, (), (), sent_at=at[0], sent_by=at[0]))
        wait_until(partial(rests, runner, at), "the end of the maintenance")
        disk.fail()
        runner.pause("operator", None, "")
    assert (runs.folder / "ran").read_text() == "ran\n"


def test_pause_and_reload_withdraw_the_approvals_that_were_not_sent(runs: RunsHarness) -> None:
    withdrawn: list[bool] = []
    runner = process(runs, runs.hook(""), [0.0], withdraw_approvals=lambda: withdrawn.append(True))
    runner.pause("operator", None, "")
    runner.reconfigure(runner.host.settings, runner.host.hooks)
    assert withdrawn == [True, True]


def test_request_directly_after_a_reload_is_judged_by_the_new_hooks(runs: RunsHarness) -> None:
    hook = runs.hook("exit 1\n")
    runner = process(runs, hook, [0.0], str(runs.folder / "run"))
    runner.document_received(EventDocument(1, (event(),), (), sent_at=0.0, sent_by=0.0))
    (record,) = runner.records.present
    wait_until(lambda: not runner.approve(record, ApprovalRequest("operator")).accepted, "the end of the hook")
    ignoring = hook._replace(settings=hook.settings._replace(on_failure="ignore"))
    runner.reconfigure(runner.host.settings, {"prepare": (ignoring,)})
    assert runner.approve(record, ApprovalRequest("operator")).accepted
