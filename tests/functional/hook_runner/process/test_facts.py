# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The daemon's process writes facts for Ansible, which are stale when no daemon keeps them up to date."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from typing import Any

import pytest

from support.daemon.daemon_process import DaemonProcess
from support.daemon.hook_scripts import HANGS
from support.daemon.simulated_azure import Azure

pytestmark = pytest.mark.all

MakeDaemon = Callable[..., DaemonProcess]


def test_facts_follow_the_events_and_the_preparation(azure: Azure, make_daemon: MakeDaemon) -> None:
    vm = make_daemon()
    path = vm.harness.folder / "azure_scheduled_events.fact"
    vm.harness.configure(facts_file=str(path))
    vm.harness.hook("prepare/10-a", HANGS)
    vm.start()

    def content() -> dict[str, Any]:
        data: dict[str, Any] = json.loads(path.read_text())
        return data

    vm.wait(lambda: content()["available"])
    assert (content()["pending"], content()["events"], content()["resource_name"]) == (False, [], "vm1")
    others, own = azure.schedule("Freeze", "vm2", hold=True), azure.schedule("Reboot", hold=True)
    vm.wait(lambda: content()["pending"])
    vm.wait(lambda: content()["events"][0]["prepared"] == "running")
    assert [each["event_id"] for each in content()["events"]] == [own] != [others]
    vm.harness.release("prepare/10-a")
    vm.wait(lambda: content()["events"][0]["prepared"] == "ok")
    vm.wait(lambda: content()["events"][0]["approval"] == "accepted")
    azure.fault("unavailable", route="scheduledevents")
    vm.wait(lambda: not content()["available"])
    assert "503" in content()["reason"] and content()["pending"]
    shown = vm.command("facts")
    assert (shown.returncode, json.loads(shown.stdout)["stale"]) == (0, False)

    vm.stop(signal.SIGKILL)
    assert content()["stale"] is False
    assert vm.command("facts", "--mark-stale").returncode == 0  # as ExecStopPost of the unit
    assert content()["stale"] is True and vm.command("facts").returncode == 1
    azure.heal()
    vm.start()
    vm.wait(lambda: content()["stale"] is False and content()["available"])
    vm.stop()
    assert content()["stale"] is True


def test_facts_that_nothing_writes_are_explained(make_daemon: MakeDaemon) -> None:
    vm = make_daemon()
    assert "facts_file is not set" in vm.command("facts").stderr
    vm.harness.configure(facts_file=str(vm.harness.folder / "no" / "x.fact"))
    assert "has not written it yet" in vm.command("facts").stderr
    found = [each for each in vm.data("check", "--offline")[1]["findings"] if each["what"] == "facts"]
    assert [each["severity"] for each in found] == ["warning"] and "does not exist" in found[0]["text"]
