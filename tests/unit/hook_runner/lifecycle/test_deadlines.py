# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The next moment at which the daemon has to end a hook."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from hook_runner.lifecycle.deadlines import hook_ends
from support.daemon.daemon_process import DaemonProcess
from support.daemon.engine_harness import EngineHarness
from support.daemon.hook_scripts import HANGS, IGNORES_TERM
from support.daemon.record_factory import NOON
from support.daemon.simulated_azure import Azure


def test_hook_ends_at_the_nearer_of_its_limit_and_its_stages_end() -> None:
    assert hook_ends(None, None, NOON, 5.0) is None
    assert hook_ends(70.0, None, NOON, 5.0) == 70.0
    assert hook_ends(70.0, NOON + timedelta(seconds=30), NOON, 5.0) == 35.0
    assert hook_ends(70.0, NOON + timedelta(seconds=300), NOON, 5.0) == 70.0
    assert hook_ends(None, NOON - timedelta(seconds=1), NOON, 5.0) == 4.0


def test_deadline_of_the_service_is_that_of_the_hook_that_runs(
    azure: Azure, make_vm: Callable[..., EngineHarness]
) -> None:
    vm = make_vm(hooks={"10-a": {"timeout": 100}}, margin=10)
    vm.hook("prepare/10-a", HANGS)
    vm.start()
    assert vm.engine.stage_runner.next_deadline() is None
    azure.schedule("Reboot", notice=600, hold=True)
    vm.poll()
    assert vm.engine.stage_runner.next_deadline() == vm.monotonic() + 100
    vm.release("prepare/10-a")
    vm.settle()
    assert vm.engine.stage_runner.next_deadline() is None


# polls in quick succession, and without the rate limit, which the test would wait for
COUNTS_TICKS = """
from azure_scheduled_events import pacing
from hook_runner.lifecycle.engine import Engine
from hook_runner.service import poller
pacing.REQUESTS_PER_SECOND = 1000
Pacer = poller.Pacer
poller.Pacer = lambda imds, interval, *more, **named: Pacer(imds, 0.03, *more, **named)
tick = Engine.tick
def counted(self):
    tick(self)
    with open(%r, "a") as file:
        file.write("x")
Engine.tick = counted
"""


def test_service_sleeps_while_a_hook_runs_and_wakes_for_its_end(
    azure: Azure, make_daemon: Callable[..., DaemonProcess]
) -> None:
    vm = make_daemon()
    vm.harness.hook("prepare/10-a", HANGS)
    ticks = vm.harness.folder / "ticks"
    vm.start(first=COUNTS_TICKS % str(ticks))
    event = azure.schedule("Reboot", hold=True)
    vm.wait(lambda: vm.harness.marks("hang"))
    looked = len(azure.requests("GET"))
    vm.wait(lambda: len(azure.requests("GET")) > looked + 5)
    looked, before = len(azure.requests("GET")), ticks.stat().st_size
    vm.wait(lambda: len(azure.requests("GET")) > looked + 15)
    # each document causes a tick, and nothing else does
    assert ticks.stat().st_size - before <= 2 * (len(azure.requests("GET")) - looked) + 4
    vm.harness.release("prepare/10-a")
    vm.wait(lambda: azure.approvals() == [("vm1", event)])


def test_service_wakes_to_end_a_hook_whose_time_is_up(azure: Azure, make_daemon: Callable[..., DaemonProcess]) -> None:
    vm = make_daemon(hooks={"10-a": {"timeout": 0.5}}, kill_after=0.2)
    vm.harness.hook("prepare/10-a", IGNORES_TERM)
    vm.start()
    azure.schedule("Reboot", hold=True)
    vm.wait(lambda: vm.times_logged("hook-ended: prepare/10-a: timeout"))
