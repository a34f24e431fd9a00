# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Ready hooks of a real minion: from its master's file root, without the master, and after a kill."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.salt.azure import Azure
from support.salt.cluster import Cluster, cluster
from support.salt.minion import Minion
from support.salt.salt_installation import QUIET, SaltInstallation
from support.wait import wait_until

pytestmark = [pytest.mark.all, pytest.mark.xdist_group("ready-hooks")]


class Hooks:
    """Two ready hooks of a minion: a command that writes lines, and the file of a health probe."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.healthy = folder / "healthy"

    def section(self) -> dict[str, Any]:
        wait = f"while test -e {self._folder}/wait; do sleep 0.1; done"
        common = {"state_directory": str(self._folder / "records")}
        return {
            "ready_hooks": [
                {"use": "health-file", "path": str(self.healthy), "wait": 0, **common},
                {
                    "use": "command",
                    "prepare": f"{self._note('prepare')}; {wait}",
                    "recover": self._note("recover"),
                    **common,
                },
            ]
        }

    def reset(self, waiting: bool = False) -> None:
        self.healthy.touch()
        (self._folder / "ran").unlink(missing_ok=True)
        (self._folder / "wait").touch() if waiting else self.allow()

    def allow(self) -> None:
        (self._folder / "wait").unlink(missing_ok=True)

    @property
    def ran(self) -> list[str]:
        """The lines of the commands, and whether the health probe succeeds."""
        file = self._folder / "ran"
        return [*(file.read_text().split() if file.exists() else []), "up" if self.healthy.exists() else "down"]

    def _note(self, word: str) -> str:
        return f"echo {word} >> {self._folder}/ran"


@pytest.fixture(scope="module")
def here(installation: SaltInstallation, azure: Azure) -> Iterator[Cluster]:
    """vm1 has its hooks in the pillar; vm2 in its own configuration, with a scheduled recovery."""
    with cluster(installation) as made:
        made.minion("vm1", azure_events={"endpoint": azure.endpoints["vm1"]})
        # each run is a process; on a busy machine a shorter interval leaves the minion no time to answer
        sweep = {"function": "azure_events.sweep", "seconds": 15, "maxrunning": 1, "return_job": False}
        hooks = Hooks(made.folder / "vm2").section()
        made.minion("vm2", azure_events={"endpoint": azure.endpoints["vm2"], **hooks}, schedule={"sweep": sweep})
        made.master.set_pillar(vm1={"azure_events": Hooks(made.minions["vm1"].folder).section()})
        made.start()
        made.master.ask_all("*", "saltutil.sync_all")
        yield made


@pytest.fixture
def vm1(here: Cluster) -> Minion:
    here.start("vm1")
    return here.minions["vm1"]


@pytest.fixture
def vm2(here: Cluster) -> Minion:
    here.start("vm2")
    return here.minions["vm2"]


def hooks_of(minion: Minion, waiting: bool = False) -> Hooks:
    hooks = Hooks(minion.folder)
    hooks.reset(waiting)
    return hooks


def outcome(minion: Minion, function: str, *words: Any) -> str:
    answer = minion.ask("azure_events." + function, *words)
    assert isinstance(answer, dict), answer
    found: str = answer["outcome"]
    return found


def test_files_come_from_the_master_and_hooks_prepare_and_recover(vm1: Minion, azure: Azure) -> None:
    hooks = hooks_of(vm1)
    checked = vm1.ask("azure_events.check")
    assert checked["outcome"] == "ready", checked
    assert [(step["use"], step["outcome"]) for step in checked["steps"]] == [("health-file", "ok"), ("command", "ok")]
    event_id = azure.announce("vm1")
    assert outcome(vm1, "prepare", event_id) == "prepared"
    assert hooks.ran == ["prepare", "down"]
    assert outcome(vm1, "approve_prepared", event_id, ["vm1"]) == "approved"
    azure.simulator.advance(2)
    azure.end(event_id)
    assert outcome(vm1, "recover", event_id) == "recovered"
    assert hooks.ran == ["prepare", "recover", "up"]


def test_recovery_while_the_master_is_away(here: Cluster, vm2: Minion, azure: Azure) -> None:
    hooks = hooks_of(vm2)
    event_id = azure.announce("vm2")
    assert outcome(vm2, "prepare", event_id) == "prepared"
    here.master.kill()
    azure.end(event_id)
    wait_until(lambda: hooks.ran == ["prepare", "recover", "up"], lambda: f"the recovery by the scheduler: {hooks.ran}")


def test_recovery_while_the_master_and_the_minion_are_away(here: Cluster, vm2: Minion, azure: Azure) -> None:
    """As after a reboot without a network: an operator on the VM recovers it."""
    hooks = hooks_of(vm2)
    event_id = azure.announce("vm2")
    assert outcome(vm2, "prepare", event_id) == "prepared"
    here.master.kill()
    vm2.kill()
    azure.end(event_id)
    command = [*vm2.installation.command("salt-call"), "-c", str(vm2.folder), "--local", "--out", "json"]
    ran = subprocess.run(
        [*command, "azure_events.recover", event_id],
        env={**os.environ, **QUIET},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(ran.stdout)["local"]["outcome"] == "recovered"
    assert hooks.ran == ["prepare", "recover", "up"]


@pytest.mark.parametrize("then", ["prepare", "recover"])
def test_minion_that_is_killed_in_the_middle_of_a_hook(here: Cluster, vm1: Minion, azure: Azure, then: str) -> None:
    hooks = hooks_of(vm1, waiting=True)
    event_id = azure.announce("vm1")
    vm1.start_job("azure_events.prepare", event_id)
    wait_until(lambda: hooks.ran == ["prepare", "down"], lambda: f"the second hook at work, not {hooks.ran}")
    vm1.kill()
    here.start("vm1")
    wait_until(lambda: vm1.ask("azure_events.status")["working"] is None, "the end of the killed preparation")
    hooks.allow()
    if then == "prepare":
        assert outcome(vm1, "prepare", event_id) == "prepared"
    azure.end(event_id)
    assert outcome(vm1, "recover", event_id) == "recovered"
    assert hooks.ran == ["prepare", *(["prepare"] if then == "prepare" else []), "recover", "up"]
