# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The executable fact of the role: it asks the daemon, and says so when none answers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest
from jinja2 import Template

from support.daemon.daemon_process import PYTHONPATH, DaemonProcess, MakeDaemon
from support.daemon.hook_scripts import FAILS, HANGS, write_program
from support.daemon.simulated_azure import Azure
from support.repository import REPOSITORY
from support.wait import DEFAULT_TIMEOUT

pytestmark = pytest.mark.all

TEMPLATE = REPOSITORY / "roles/hook_runner/templates/azure_scheduled_events.fact.j2"


class Fact:
    def __init__(self, vm: DaemonProcess) -> None:
        folder = vm.harness.folder
        text = f'#!/bin/sh\nexec {sys.executable} -m hook_runner "$@" --config {folder}/config.yml\n'
        command = write_program(folder / "azure-scheduled-events", text)
        variables = {
            "ansible_managed": "Ansible managed",
            "hook_runner__command": str(command),
            "hook_runner__library": str(REPOSITORY / "plugins/module_utils"),
            "hook_runner__python": sys.executable,
        }
        fact = Template(TEMPLATE.read_text(encoding="utf-8")).render(variables)
        self._program = write_program(folder / "azure_scheduled_events.fact", fact)

    def read(self) -> dict[str, Any]:
        shown = subprocess.run(
            [str(self._program)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env={**os.environ, "PYTHONPATH": PYTHONPATH},
            timeout=DEFAULT_TIMEOUT,
            check=True,
        )
        found: dict[str, Any] = json.loads(shown.stdout)
        return found


def test_facts_follow_the_events_and_the_preparation(azure: Azure, make_daemon: MakeDaemon) -> None:
    vm = make_daemon()
    fact = Fact(vm)
    vm.harness.hook("prepare/10-a", HANGS)
    vm.harness.hook("recover/10-a", FAILS)
    vm.start()
    vm.wait(lambda: fact.read()["available"])
    nothing = fact.read()
    assert (nothing["pending"], nothing["events"], nothing["resource_name"]) == (False, [], "vm1")
    assert (nothing["reason"], nothing["maintenance"], nothing["paused"]) == ("", None, False)
    others, own = azure.schedule("Freeze", "vm2", hold=True), azure.schedule("Reboot", hold=True)
    vm.wait(lambda: [event["prepared"] for event in fact.read()["events"]] == ["running"])
    assert fact.read()["pending"] and [event["event_id"] for event in fact.read()["events"]] == [own] != [others]
    vm.harness.release("prepare/10-a")
    vm.wait(lambda: fact.read()["events"][0]["approval"] == "accepted")
    assert fact.read()["events"][0]["prepared"] == "ok"
    azure.fault("unavailable", route="scheduledevents")
    vm.wait(lambda: not fact.read()["available"])
    assert "503" in fact.read()["reason"] and fact.read()["pending"]
    azure.heal()
    azure.cancel(own)
    vm.wait(lambda: fact.read()["maintenance"]["not_recovered"] == ["10-a"])
    recovering = fact.read()
    assert recovering["maintenance"]["phase"] == "recovering" and not recovering["pending"]


def test_event_that_only_advises_is_not_pending(azure: Azure, make_daemon: MakeDaemon) -> None:
    vm = make_daemon().start()
    azure.show(azure.entry(EventType="SpotRebalanceRecommendation"))
    vm.wait(lambda: Fact(vm).read()["events"])
    assert Fact(vm).read()["pending"] is False


def test_facts_say_that_no_daemon_answers(make_daemon: MakeDaemon) -> None:
    facts = Fact(make_daemon()).read()
    assert (facts["available"], facts["reason"]) == (False, "the hook runner does not run")
    assert facts["events"] == [] and "pending" not in facts


def test_facts_have_the_error_of_the_command(make_daemon: MakeDaemon) -> None:
    vm = make_daemon()
    fact = Fact(vm)
    (vm.harness.folder / "config.yml").write_text("intervall: 1\n")
    facts = fact.read()
    assert facts["available"] is False and "did you mean interval?" in facts["reason"]
