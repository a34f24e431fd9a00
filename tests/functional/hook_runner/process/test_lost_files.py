# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The running service while its disk is full, or its files are removed or emptied."""

from __future__ import annotations

import os
import shutil
import signal

import pytest

from support.daemon.daemon_process import DaemonProcess, MakeDaemon
from support.daemon.hook_scripts import HANGS
from support.daemon.metrics_file import read
from support.daemon.simulated_azure import Azure

pytestmark = pytest.mark.all

# the service comes round sooner than it does while nothing happens
SOON = """
from hook_runner.reporting import metrics
from hook_runner.service import daemon
metrics.METRICS_INTERVAL = daemon.IDLE_INTERVAL = 0.3
"""
ON_FULL_DISK = """
import errno, os
from azure_scheduled_events import durable_file
_create = durable_file.create
def _created(path, *arguments):
    if path.startswith(%(directory)r) and os.path.exists(%(flag)r):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
    _create(path, *arguments)
durable_file.create = _created
"""


def start(vm: DaemonProcess) -> None:
    """Start the service on a disk that takes no records while a file exists."""
    folder = vm.harness.folder
    vm.start(first=SOON + ON_FULL_DISK % {"directory": str(folder / "state"), "flag": str(folder / "full")})


def fill_disk(vm: DaemonProcess) -> None:
    (vm.harness.folder / "full").touch()


def free_disk(vm: DaemonProcess) -> None:
    (vm.harness.folder / "full").unlink()


def test_approval_waits_for_records_and_a_command_tries_to_write_them(azure: Azure, make_daemon: MakeDaemon) -> None:
    vm = make_daemon(policy="observe")
    vm.harness.configure(metrics_file=str(vm.harness.folder / "metrics.prom"))
    start(vm)
    event = azure.schedule("Reboot", hold=True)
    vm.wait(lambda: vm.data("status")[1]["events"])
    fill_disk(vm)
    azure.schedule("Redeploy", hold=True)
    since = ("records_degraded_since_timestamp_seconds", ())
    vm.wait(lambda: abs(read(vm.harness.folder / "metrics.prom").get(since, 0) - azure.now().timestamp()) < 60)
    code, data = vm.data("status")
    assert code == 1 and not data["records"]["ok"] and data["records"]["since"].endswith("Z")
    assert "; since 20" in vm.command("status").stdout
    assert vm.data("approve", event)[0] == 1 and azure.approvals() == []
    free_disk(vm)
    code, answer = vm.data("approve", event)
    assert code == 0, answer  # although the last attempt was a moment ago
    vm.wait(azure.approvals)
    vm.wait(lambda: vm.data("status")[0] == 0)
    assert vm.data("status")[1]["records"] == {"ok": True, "error": None, "since": None, "set_aside": []}


@pytest.mark.parametrize("what", ["", "control.sock", "lock"])
def test_run_directory_that_was_removed_is_made_anew(what: str, azure: Azure, make_daemon: MakeDaemon) -> None:
    vm = make_daemon()
    vm.harness.hook("prepare/10-a", HANGS)
    vm.start(first=SOON)
    event = azure.schedule("Reboot", hold=True)
    vm.wait(lambda: vm.harness.marks("hang"))
    removed = vm.harness.folder / "run" / what
    shutil.rmtree(removed) if removed.is_dir() else removed.unlink()
    vm.wait(lambda: vm.times_logged("was removed: it is created again") == (1 if what else 2))
    vm.wait(lambda: vm.data("status")[0] == 0)
    second = vm.command("run")
    assert second.returncode == 1 and "another azure-scheduled-events holds" in second.stderr
    vm.harness.release("prepare/10-a")
    vm.wait(azure.approvals)
    assert vm.harness.ran() == ["prepare/10-a"] and azure.approvals() == [("vm1", event)]
    vm.wait(lambda: vm.data("status")[1]["events"][0]["approval"] == "accepted")
    assert vm.stop() < 5 and not (vm.harness.folder / "run" / "control.sock").exists()


def test_service_ends_when_another_one_took_its_lock(azure: Azure, make_daemon: MakeDaemon) -> None:
    vm = make_daemon().start(first=SOON)
    first = vm.process
    assert first is not None
    first.send_signal(signal.SIGSTOP)  # else it would have made its lock again before the other one begins
    os.waitid(os.P_PID, first.pid, os.WSTOPPED | os.WNOWAIT)
    shutil.rmtree(vm.harness.folder / "run")
    vm.start()
    first.send_signal(signal.SIGCONT)
    assert first.wait(30) == 1 and vm.times_logged("another azure-scheduled-events holds") == 1
    assert vm.data("status")[0] == 0
