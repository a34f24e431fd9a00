# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A minion after sync_all, which prepares and recovers by jobs, and without its master."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.repository import REPOSITORY
from support.salt.cluster import cluster
from support.salt.fleet import SPARE, Fleet
from support.salt.master import Refused
from support.salt.minion import Minion
from support.salt.salt_installation import QUIET, SaltInstallation
from support.salt.tree_minion import StepLog

pytestmark = pytest.mark.xdist_group("live")

HELPER = REPOSITORY / "plugins" / "module_utils" / "azure_scheduled_events"


def outcome(minion: Minion, function: str, *words: Any) -> str:
    answer = minion.ask("azure_events." + function, *words)
    assert isinstance(answer, dict), answer
    return str(answer["outcome"])


def test_functions_and_states_are_there_after_sync_all(spare: Minion) -> None:
    assert {"azure_events.list", "azure_events.approve", "azure_events.wait"} <= set(
        spare.ask("sys.list_functions", "azure_events")
    )
    assert set(spare.ask("sys.list_state_functions", "azure_events")) == {
        f"azure_events.{state}" for state in ("approved", "pending", "prepared", "recovered", "settled")
    }


@pytest.mark.all
def test_the_helper_arrives_as_files_of_its_own(spare: Minion) -> None:
    """Links in the tree lead out of it: they must not be sent as links."""
    extmods = Path(spare.config["extension_modules"])
    arrived = extmods / "utils" / "azure_scheduled_events"
    assert {file.name: file.read_bytes() for file in arrived.glob("*.py")} == {
        file.name: file.read_bytes() for file in HELPER.glob("*.py")
    }
    assert [file for file in extmods.rglob("*.py") if file.is_symlink()] == []


@pytest.mark.all
def test_engine_after_its_sync_names_the_problem_of_its_configuration(installation: SaltInstallation) -> None:
    with cluster(installation) as here:
        here.minion("vm1")
        here.start()
        assert "engines.azure_events" in here.master.run("salt-run", "saltutil.sync_engines")
        assert "utils.azure_events_engine.reducer" in here.master.run("salt-run", "saltutil.sync_utils")
        assert "runners.azure_events" in here.master.run("salt-run", "saltutil.sync_runners")
        here.master.configure(engines=[{"azure_events": {}}], azure_events={"awnser": 5})
        here.master.kill()
        here.start()
        with pytest.raises(Refused, match="unknown key 'awnser'; did you mean answer?"):
            here.master.run_runner("azure_events.fleet")


def test_prepare_and_recover_by_jobs(running: Fleet, spare: Minion) -> None:
    azure, step_log = running.azure, StepLog(spare)
    running.cluster.master.set_pillar(**{SPARE: step_log.pillar()})
    assert spare.ask("saltutil.refresh_pillar", wait=True) is True
    event_id = azure.announce(SPARE)
    assert outcome(spare, "prepare", event_id) == "prepared"
    assert outcome(spare, "prepare", event_id) == "already_prepared"
    assert outcome(spare, "approve_prepared", event_id, [SPARE]) == "approved"
    azure.simulator.advance(2)
    azure.end(event_id)
    assert outcome(spare, "recover", event_id) == "recovered"
    assert step_log.counts == (1, 1)


@pytest.mark.all
def test_ready_hooks_of_the_master_recover_without_it(running: Fleet, spare: Minion, tmp_path: Path) -> None:
    """As after a reboot without a network: an operator on the VM recovers it."""
    healthy = tmp_path / "healthy"
    healthy.touch()
    hook = {"use": "health-file", "path": str(healthy), "wait": 0, "state_directory": str(tmp_path / "records")}
    spare.configure(azure_events={**spare.config["azure_events"], "ready_hooks": [hook]})
    spare.kill()
    running.cluster.start(SPARE)
    event_id = running.azure.announce(SPARE)
    assert outcome(spare, "prepare", event_id) == "prepared" and not healthy.exists()
    running.cluster.master.kill()
    spare.kill()
    running.azure.end(event_id)
    command = [*spare.installation.command("salt-call"), "-c", str(spare.folder), "--local", "--out", "json"]
    ran = subprocess.run(
        [*command, "azure_events.recover", event_id],
        env={**os.environ, **QUIET},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(ran.stdout)["local"]["outcome"] == "recovered" and healthy.exists()
    spare.config["azure_events"].pop("ready_hooks")
    spare.configure()
    running.cluster.start()
