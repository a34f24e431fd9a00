# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The script that docs/migration.md replaces handles an event as the page says."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import simulator_process
from support.recipes.printed import find
from support.simulator_process import Simulator

PAGE = "docs/migration.md"
SCENARIO = {"groups": {"set": {"vms": {"web1": {}, "web2": {}}}}, "knobs": {"rate_limit": 0}}
MISSING = [name for name in ("curl", "jq") if shutil.which(name) is None]

pytestmark = [
    pytest.mark.all,
    pytest.mark.skipif(bool(MISSING), reason=f"the script of the page needs {' and '.join(MISSING)}"),
]


class OldVm:
    """The script of the page, with its address and its paths in a folder of the test."""

    def __init__(self, azure: Simulator, folder: Path) -> None:
        self.azure, self._folder = azure, folder
        self._calls = folder / "calls"
        text = find(PAGE, "#!/bin/sh").text
        for name in ("leave-load-balancer", "join-load-balancer"):
            program = folder / name
            program.write_text(
                f'#!/bin/sh\necho {name} >>"{self._calls}"\n! test -e "{folder}/failing"\n', encoding="utf-8"
            )
            program.chmod(0o755)
        for theirs, ours in {
            "http://169.254.169.254": azure.endpoints["web1"],
            "/usr/local/bin": str(folder),
            "/var/lib/azure-events-drained": str(folder / "drained"),
        }.items():
            assert theirs in text
            text = text.replace(theirs, ours)
        self._script = folder / "azure-events"
        self._script.write_text(text, encoding="utf-8")

    def fail(self) -> None:
        (self._folder / "failing").touch()

    def run(self) -> int:
        return subprocess.run(["sh", self._script], capture_output=True, timeout=60, check=False).returncode

    @property
    def calls(self) -> list[str]:
        return self._calls.read_text(encoding="utf-8").split() if self._calls.exists() else []

    @property
    def approvals(self) -> list[str]:
        lines = self.azure.get("/log?what=approval")["lines"]
        return [event_id for line in lines if line["status"] == 200 for event_id in line["ids"]]

    def announce(self, *resources: str) -> str:
        event = {"type": "Reboot", "resources": list(resources), "notice": "15m"}
        return str(self.azure.post("/events", event)["id"])


@pytest.fixture
def vm(tmp_path: Path) -> Iterator[OldVm]:
    with simulator_process.start(SCENARIO, ["--clock", "manual"]) as azure:
        yield OldVm(azure, tmp_path)


def test_script_prepares_approves_and_recovers(vm: OldVm) -> None:
    vm.run()
    assert vm.calls == []
    event_id = vm.announce("web1")
    vm.run()
    assert (vm.calls, vm.approvals) == (["leave-load-balancer"], [event_id])
    vm.azure.post(f"/events/{event_id}/cancel")
    vm.run()
    assert vm.calls == ["leave-load-balancer", "join-load-balancer"]


def test_script_approves_nothing_after_a_failure(vm: OldVm) -> None:
    vm.announce("web1")
    vm.fail()
    assert vm.run() == 1
    assert vm.approvals == []


def test_script_approves_an_event_of_several_vms(vm: OldVm) -> None:
    event_id = vm.announce("web1", "web2")
    vm.run()
    assert vm.approvals == [event_id]


def test_script_does_not_approve_a_second_event(vm: OldVm) -> None:
    first = vm.announce("web1")
    vm.run()
    vm.announce("web1")
    vm.run()
    assert (vm.calls, vm.approvals) == (["leave-load-balancer"], [first])


def test_script_stays_drained_while_another_vm_has_an_event(vm: OldVm) -> None:
    first = vm.announce("web1")
    vm.run()
    vm.announce("web2")
    vm.azure.post(f"/events/{first}/cancel")
    vm.run()
    assert vm.calls == ["leave-load-balancer"]


def test_commands_of_the_playbook_are_those_of_the_script() -> None:
    script, playbook = find(PAGE, "#!/bin/sh").text, find(PAGE, "switch.yml").text
    for name in ("leave-load-balancer", "join-load-balancer"):
        assert f"/usr/local/bin/{name}" in script and f"exec /usr/local/bin/{name}\n" in playbook
