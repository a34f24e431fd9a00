# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The script and the policy of docs/other-handlers.md for CycleCloud's Jetpack, with a real daemon."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from azure_scheduled_events.event_types import EVENT_TYPES, advises
from support.daemon.daemon_process import PYTHONPATH, DaemonProcess, MakeDaemon
from support.daemon.documents import blocks, quoted
from support.daemon.hook_scripts import FAILS, HANGS, write_program
from support.daemon.simulated_azure import Azure
from support.repository import REPOSITORY
from support.wait import DEFAULT_TIMEOUT

PAGE = (REPOSITORY / "docs" / "other-handlers.md").read_text(encoding="utf-8")
(SCRIPT,) = blocks(PAGE, "sh")
(POLICY,) = blocks(PAGE, "yaml")

pytestmark = pytest.mark.skipif(shutil.which("jq") is None, reason="the script of the page needs jq")


class Jetpack:
    """What Jetpack does on a VM: it runs the script of a type, and approves the event if the script succeeds."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.programs = folder / "bin"
        self.running: list[subprocess.Popen[bytes]] = []

    def install(self, name: str, text: str) -> None:
        write_program(self.programs / name, text)

    def begin(self, kind: str) -> subprocess.Popen[bytes]:
        script = write_program(self._folder / f"on{kind}.sh", SCRIPT)
        path = f"{self.programs}{os.pathsep}{os.environ['PATH']}"
        self.running.append(subprocess.Popen([script], env={"PATH": path}, stdin=subprocess.DEVNULL))
        return self.running[-1]


def result_of(script: subprocess.Popen[bytes], azure: Azure, vm: DaemonProcess) -> int:
    """Return the exit status of a script, which waits for an answer of IMDS with another date than the last one."""

    def has_ended() -> bool:
        azure.advance(1)
        return script.poll() is not None

    vm.wait(has_ended)
    return script.returncode


@pytest.fixture
def jetpack(tmp_path: Path) -> Iterator[Jetpack]:
    made = Jetpack(tmp_path / "jetpack")
    yield made
    for script in made.running:
        script.kill()
        script.wait()


@pytest.fixture
def vm(make_daemon: MakeDaemon, jetpack: Jetpack) -> DaemonProcess:
    made = make_daemon(**yaml.safe_load(POLICY))
    command = [sys.executable, "-m", "hook_runner"]
    config = made.harness.folder / "config.yml"
    jetpack.install(
        "azure-scheduled-events",
        f"#!/bin/sh\nPYTHONPATH={shlex.quote(PYTHONPATH)} exec {shlex.join(command)} \"$@\" --config '{config}'\n",
    )
    return made


def test_jetpack_approves_when_the_hook_runner_has_prepared(azure: Azure, vm: DaemonProcess, jetpack: Jetpack) -> None:
    vm.harness.hook("prepare/10-a", HANGS)
    vm.start()
    script = jetpack.begin("Reboot")  # Jetpack may see the event before the hook runner does
    event_id = azure.schedule("Reboot", notice="1h")
    others = azure.schedule("Reboot", "vm2", notice="1h")
    vm.wait(lambda: vm.harness.marks("hang"))
    assert script.poll() is None
    vm.harness.release("prepare/10-a")
    assert result_of(script, azure, vm) == 0
    assert len(vm.harness.marks("end")) == 1 and azure.approvals() == []
    azure.approve(event_id)
    azure.advance(60)
    assert (azure.status(event_id), azure.status(others)) == ("Started", "Scheduled")


@pytest.mark.parametrize("body, resources", [(FAILS, ["vm1"]), (":", ["vm1", "vm2"])], ids=["failed hook", "other VMs"])
def test_jetpack_does_not_approve(
    azure: Azure, vm: DaemonProcess, jetpack: Jetpack, body: str, resources: list[str]
) -> None:
    vm.harness.hook("prepare/10-a", body)
    vm.start()
    azure.schedule("Redeploy", *resources, hold=True, notice="1h")
    assert result_of(jetpack.begin("Redeploy"), azure, vm) == 1


def test_jetpack_waits_for_an_answer_of_imds_since_the_script_began(
    azure: Azure, vm: DaemonProcess, jetpack: Jetpack
) -> None:
    vm.harness.hook("prepare/10-a")
    vm.start()
    azure.schedule("Freeze", hold=True, notice="1h")
    assert result_of(jetpack.begin("Freeze"), azure, vm) == 0
    azure.fault("status", status=503)
    vm.wait(lambda: not json.loads(vm.command("status", "--json").stdout)["imds"]["ok"])
    script = jetpack.begin("Freeze")
    with pytest.raises(subprocess.TimeoutExpired):
        script.wait(3)
    azure.heal()
    assert result_of(script, azure, vm) == 0


def test_jetpack_does_not_approve_without_a_hook_runner(jetpack: Jetpack) -> None:
    jetpack.install("azure-scheduled-events", "#!/bin/sh\necho '{\"running\": false}'\nexit 3\n")
    jetpack.install("seq", f"#!/bin/sh\necho \"$1\" > '{jetpack.programs}/seconds'\necho 1\n")
    assert jetpack.begin("Freeze").wait(DEFAULT_TIMEOUT) == 1
    assert (jetpack.programs / "seconds").read_text() == f"{15 * 60}\n"


def test_page_names_a_script_for_each_type() -> None:
    named = {name for name in quoted(PAGE) if name.startswith("on") and name.endswith(".sh")}
    assert named == {f"on{kind}.sh" for kind in EVENT_TYPES if not advises(kind)}
