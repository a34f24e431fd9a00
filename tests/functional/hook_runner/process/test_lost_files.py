# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The running service while its files are locked, removed or emptied: journal, run directory, configuration."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
from collections.abc import Callable

import pytest

from support.daemon.daemon_process import DaemonProcess
from support.daemon.hook_scripts import HANGS
from support.daemon.metrics_file import read
from support.daemon.simulated_azure import Azure

pytestmark = pytest.mark.all

MakeDaemon = Callable[..., DaemonProcess]

# the service comes round sooner than it does while nothing happens
SOON = """
from hook_runner.journal import journal
from hook_runner.service import daemon, metrics_output
metrics_output.METRICS_INTERVAL = daemon.IDLE_INTERVAL = 0.3
journal.REOPEN_INTERVAL = journal.CHECK_INTERVAL = 0.3
# as little of the time as it is otherwise: the service answers no command while it waits
journal.BUSY_TIMEOUT = 0.03
"""


def lock(vm: DaemonProcess) -> sqlite3.Connection:
    """Hold the journal's write lock, until the connection is closed."""
    holder = sqlite3.connect(str(vm.harness.folder / "state" / "journal.db"), isolation_level=None, timeout=30)
    holder.execute("BEGIN IMMEDIATE")
    return holder


def preparations(vm: DaemonProcess) -> list[str]:
    """How far each event of the status is prepared; empty if the service gives no answer in time."""
    return [event["prepared"] for event in vm.data("status")[1].get("events", [])]


def with_hook_that_ended_while_the_journal_was_locked(
    azure: Azure, vm: DaemonProcess
) -> tuple[str, sqlite3.Connection]:
    vm.harness.hook("prepare/10-a", HANGS)
    event = azure.schedule("Reboot", hold=True)
    vm.start(first=SOON)
    vm.wait(lambda: vm.harness.marks("hang"))
    holder = lock(vm)
    vm.harness.release("prepare/10-a")
    vm.wait(lambda: preparations(vm) == ["ok"])
    return event, holder


def test_withheld_approval_is_sent_when_the_journal_can_be_written_again(azure: Azure, make_daemon: MakeDaemon) -> None:
    vm = make_daemon()
    vm.harness.configure(metrics_file=str(vm.harness.folder / "metrics.prom"))
    event, holder = with_hook_that_ended_while_the_journal_was_locked(azure, vm)
    since = ("journal_degraded_since_timestamp_seconds", ())
    vm.wait(lambda: abs(read(vm.harness.folder / "metrics.prom").get(since, 0) - azure.now().timestamp()) < 60)
    code, data = vm.data("status")
    assert code == 1 and not data["journal"]["ok"] and data["journal"]["since"].endswith("Z")
    assert "; since 20" in vm.command("status").stdout
    assert vm.data("approve", event)[0] == 1 and azure.approvals() == []
    holder.close()
    vm.wait(azure.approvals)
    vm.wait(lambda: vm.data("status")[0] == 0)
    assert vm.data("status")[1]["journal"] == {"ok": True, "error": None, "since": None}
    vm.stop(signal.SIGKILL)
    vm.start(first=SOON)
    azure.schedule("Freeze", "vm2")
    vm.wait(lambda: len(preparations(vm)) == 2)
    assert vm.harness.ran() == ["prepare/10-a"] and azure.approvals() == [("vm1", event)]


def test_approval_by_hand_tries_the_journal_before_it_is_refused(azure: Azure, make_daemon: MakeDaemon) -> None:
    vm = make_daemon(policy="observe")
    vm.start()
    event = azure.schedule("Reboot", hold=True)
    vm.wait(lambda: preparations(vm))
    holder = lock(vm)
    azure.schedule("Redeploy", hold=True)
    vm.wait(lambda: vm.data("status")[0] == 1)
    assert vm.data("approve", event)[0] == 1
    holder.close()
    assert vm.data("approve", event)[0] == 0  # although the last attempt was a moment ago
    vm.wait(azure.approvals)


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


@pytest.mark.parametrize(
    "content", ["", "# all is gone\n", "---\n", None], ids=["no bytes", "comments", "an empty document", "no file"]
)
def test_empty_configuration_is_refused_while_an_event_is_in_progress(
    content: str, azure: Azure, make_daemon: MakeDaemon
) -> None:
    vm = make_daemon()
    vm.harness.hook("prepare/10-a", HANGS)
    event = azure.schedule("Reboot", hold=True)
    vm.start()
    vm.wait(lambda: vm.harness.marks("hang"))
    config = vm.harness.folder / "config.yml"
    before = config.read_text()
    os.unlink(config) if content is None else config.write_text(content)
    assert vm.process is not None
    vm.process.send_signal(signal.SIGHUP)
    vm.wait(lambda: vm.times_logged("the configuration is not changed"))
    config.write_text(before)
    assert vm.data("status")[1]["policy"] == "rules"
    vm.harness.release("prepare/10-a")
    vm.wait(azure.approvals)
    assert azure.approvals() == [("vm1", event)]


def test_empty_configuration_is_taken_while_nothing_happens(azure: Azure, make_daemon: MakeDaemon) -> None:
    vm = make_daemon().start()
    (vm.harness.folder / "config.yml").write_text("")
    assert vm.process is not None
    vm.process.send_signal(signal.SIGHUP)
    vm.wait(lambda: vm.times_logged("configuration and hooks are read again"))
    assert vm.times_logged("is not changed") == 0
