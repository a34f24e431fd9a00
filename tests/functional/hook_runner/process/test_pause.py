# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The verbs pause and resume."""

from __future__ import annotations

from collections.abc import Callable

from support.daemon.daemon_process import DaemonProcess


def test_the_verbs_pause_and_resume(make_daemon: Callable[..., DaemonProcess]) -> None:
    vm = make_daemon()
    file = vm.harness.folder / "our.prom"
    vm.harness.configure(metrics_file=str(file))
    assert vm.command("pause").returncode == vm.command("resume").returncode == 3
    vm.start(first="from hook_runner.reporting import metrics; metrics.METRICS_INTERVAL = 0.1")
    code, data = vm.data("status")
    assert (code, data["paused"]) == (0, None)
    code, data = vm.data("pause", "--until", "2h", "--reason", "a change\n\x1b[2J")
    assert (code, data["accepted"]) == (0, True)
    code, status = vm.data("status")
    assert code == 1 and set(status["paused"]) == {"since", "until", "by", "reason"}
    assert status["paused"]["reason"] == "a change??[2J"
    vm.wait(lambda: file.exists() and "azure_scheduled_events_paused 1.0" in file.read_text())
    vm.wait(lambda: vm.times_notified("STATUS=paused; watching as vm1: no events"))
    vm.stop(9)
    vm.start(until="STATUS=paused; watching")
    assert vm.data("status")[1]["paused"] == status["paused"]
    assert vm.command("resume").stdout == "resumed\n"
    assert vm.command("resume").stdout == "the daemon is not paused\n"
    assert vm.data("status")[0] == 0
    code, data = vm.data("pause", "--until", "2020-01-01T00:00:00Z")
    assert (code, data["accepted"]) == (1, False) and "has passed" in data["text"]
    wrong = vm.command("pause", "--until", "soon")
    assert wrong.returncode == 2 and "expected a time such as 30m" in wrong.stderr


def test_the_version_is_that_of_the_collection_and_of_the_daemon(make_daemon: Callable[..., DaemonProcess]) -> None:
    vm = make_daemon().start()
    version = vm.data("status")[1]["version"]
    assert vm.command("--version").stdout == f"azure-scheduled-events {version}\n"
