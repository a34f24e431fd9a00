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

from support.daemon.daemon_process import Daemon
from support.daemon.hook_scripts import HANGS
from support.daemon.metrics_file import read
from support.daemon.simulated_azure import Azure

MakeDaemon = Callable[..., Daemon]

# the service comes round sooner than it does while nothing happens
SOON = "from hook_runner.journal import journal\nfrom hook_runner.service import daemon\ndaemon.METRICS_INTERVAL = journal.REOPEN_INTERVAL = journal.CHECK_INTERVAL = daemon.IDLE_INTERVAL = 0.3"


def lock(me: Daemon) -> sqlite3.Connection:
    """Hold the journal's write lock, until the connection is closed."""
    holder = sqlite3.connect(str(me.rig.folder / "state" / "journal.db"), isolation_level=None, timeout=30)
    holder.execute("BEGIN IMMEDIATE")
    return holder


def preparations(me: Daemon) -> list[str]:
    """How far each event of the status is prepared; empty if the service gives no answer in time."""
    return [event["prepared"] for event in me.data("status")[1].get("events", [])]


def with_hook_that_ended_while_the_journal_was_locked(azure: Azure, me: Daemon) -> tuple[str, sqlite3.Connection]:
    me.rig.hook("prepare/10-a", HANGS)
    event = azure.schedule("Reboot", hold=True)
    me.start(first=SOON)
    me.wait(lambda: me.rig.marks("hang"))
    holder = lock(me)
    me.rig.release("prepare/10-a")
    me.wait(lambda: preparations(me) == ["ok"])
    return event, holder


def test_withheld_approval_is_sent_when_the_journal_can_be_written_again(azure: Azure, make_daemon: MakeDaemon) -> None:
    me = make_daemon()
    me.rig.configure(metrics_file=str(me.rig.folder / "metrics.prom"))
    event, holder = with_hook_that_ended_while_the_journal_was_locked(azure, me)
    since = ("journal_degraded_since_timestamp_seconds", ())
    me.wait(lambda: abs(read(me.rig.folder / "metrics.prom").get(since, 0) - azure.now().timestamp()) < 60)
    code, data = me.data("status")
    assert code == 1 and not data["journal"]["ok"] and data["journal"]["since"].endswith("Z")
    assert "; since 20" in me.command("status").stdout
    assert me.data("approve", event)[0] == 1 and azure.approvals() == []
    holder.close()
    me.wait(azure.approvals)
    me.wait(lambda: me.data("status")[0] == 0)
    assert me.data("status")[1]["journal"] == {"ok": True, "error": None, "since": None}
    me.stop(signal.SIGKILL)
    me.start(first=SOON)
    azure.schedule("Freeze", "vm2")
    me.wait(lambda: len(preparations(me)) == 2)
    assert me.rig.ran() == ["prepare/10-a"] and azure.approvals() == [("vm1", event)]


def test_approval_by_hand_tries_the_journal_before_it_is_refused(azure: Azure, make_daemon: MakeDaemon) -> None:
    me = make_daemon(policy="observe")
    me.start()
    event = azure.schedule("Reboot", hold=True)
    me.wait(lambda: preparations(me))
    holder = lock(me)
    azure.schedule("Redeploy", hold=True)
    me.wait(lambda: me.data("status")[0] == 1)
    assert me.data("approve", event)[0] == 1
    holder.close()
    assert me.data("approve", event)[0] == 0  # although the last attempt was a moment ago
    me.wait(azure.approvals)


@pytest.mark.parametrize("what", ["", "control.sock", "lock"])
def test_run_directory_that_was_removed_is_made_anew(what: str, azure: Azure, make_daemon: MakeDaemon) -> None:
    me = make_daemon()
    me.rig.hook("prepare/10-a", HANGS)
    me.start(first=SOON)
    event = azure.schedule("Reboot", hold=True)
    me.wait(lambda: me.rig.marks("hang"))
    removed = me.rig.folder / "run" / what
    shutil.rmtree(removed) if removed.is_dir() else removed.unlink()
    me.wait(lambda: me.said("was removed: it is made anew") == (1 if what else 2))
    me.wait(lambda: me.data("status")[0] == 0)
    second = me.command("run")
    assert second.returncode == 1 and "another azure-scheduled-events holds" in second.stderr
    me.rig.release("prepare/10-a")
    me.wait(azure.approvals)
    assert me.rig.ran() == ["prepare/10-a"] and azure.approvals() == [("vm1", event)]
    me.wait(lambda: me.data("status")[1]["events"][0]["approval"] == "accepted")
    assert me.stop() < 5 and not (me.rig.folder / "run" / "control.sock").exists()


def test_service_ends_when_another_one_took_its_lock(azure: Azure, make_daemon: MakeDaemon) -> None:
    me = make_daemon().start(first=SOON)
    first = me.process
    assert first is not None
    first.send_signal(signal.SIGSTOP)  # else it would have made its lock anew before the other one begins
    os.waitid(os.P_PID, first.pid, os.WSTOPPED | os.WNOWAIT)
    shutil.rmtree(me.rig.folder / "run")
    me.start()
    first.send_signal(signal.SIGCONT)
    assert first.wait(30) == 1 and me.said("another azure-scheduled-events holds") == 1
    assert me.data("status")[0] == 0


@pytest.mark.parametrize(
    "content", ["", "# all is gone\n", "---\n", None], ids=["no bytes", "comments", "an empty document", "no file"]
)
def test_empty_configuration_is_refused_while_an_event_is_in_progress(
    content: str, azure: Azure, make_daemon: MakeDaemon
) -> None:
    me = make_daemon()
    me.rig.hook("prepare/10-a", HANGS)
    event = azure.schedule("Reboot", hold=True)
    me.start()
    me.wait(lambda: me.rig.marks("hang"))
    config = me.rig.folder / "config.yml"
    before = config.read_text()
    os.unlink(config) if content is None else config.write_text(content)
    assert me.process is not None
    me.process.send_signal(signal.SIGHUP)
    me.wait(lambda: me.said("the configuration stays as it was"))
    config.write_text(before)
    assert me.data("status")[1]["policy"] == "rules"
    me.rig.release("prepare/10-a")
    me.wait(azure.approvals)
    assert azure.approvals() == [("vm1", event)]


def test_empty_configuration_is_taken_while_nothing_happens(azure: Azure, make_daemon: MakeDaemon) -> None:
    me = make_daemon().start()
    (me.rig.folder / "config.yml").write_text("")
    assert me.process is not None
    me.process.send_signal(signal.SIGHUP)
    me.wait(lambda: me.said("configuration and hooks are read again"))
    assert me.said("stays as it was") == 0
