# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The wheel of salt/: built, installed by pip, and used by a minion without a sync."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.repository import REPOSITORY
from support.salt.azure import Azure
from support.salt.cluster import Cluster, cluster
from support.salt.salt_installation import SaltInstallation
from support.wait import wait_until
from tools.repository.collection_tree import copy_tree
from tools.repository.hook_links import LINKS, present_links

pytestmark = [pytest.mark.all, pytest.mark.xdist_group("wheel")]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    tree = copy_tree(REPOSITORY, folder / "tree")
    command = [sys.executable, "-m", "pip", "wheel", "-qq", "--no-deps", "--wheel-dir", str(folder), str(tree / "salt")]
    subprocess.run(command, check=True)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def with_wheel(
    installation: SaltInstallation, wheel: Path, tmp_path_factory: pytest.TempPathFactory
) -> SaltInstallation:
    environment = installation.shared_by(tmp_path_factory.mktemp("pip") / "venv")
    # pip is one of the shared packages
    environment.install("--no-deps", wheel)
    return environment


@pytest.fixture(scope="module")
def unsynced(with_wheel: SaltInstallation, azure: Azure, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(with_wheel, [tmp_path_factory.mktemp("empty")], engines=[{"azure_events": {}}]) as here:
        settings = {"endpoint": azure.endpoints["vm3"]}
        here.minion("vm3", azure_events=settings, beacons={"azure_events": [{"interval": 1}]})
        here.start()
        yield here


def test_the_helper_and_the_ready_hooks_are_in_the_wheel_as_they_are(wheel: Path) -> None:
    """Their licence is that of the helper, which is in the wheel, too."""
    helper, hooks = "azure_scheduled_events/", "azure_events_salt/hooks/"
    with zipfile.ZipFile(wheel) as archive:
        inside = {name: archive.read(name) for name in archive.namelist() if name.startswith((helper, hooks))}
    files = {helper + file.name: file for file in (REPOSITORY / "plugins" / "module_utils" / helper).glob("*.py")}
    files.update({hooks + str(path.relative_to(LINKS)): REPOSITORY / path for path in present_links(REPOSITORY)})
    assert inside == {name: file.read_bytes() for name, file in files.items()}


def test_dependencies_of_the_wheel_are_installed(with_wheel: SaltInstallation) -> None:
    ran = subprocess.run([with_wheel.python, "-m", "pip", "check"], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout


def test_modules_and_engine_are_there_without_a_sync(unsynced: Cluster, azure: Azure) -> None:
    vm3 = unsynced.minions["vm3"]
    event_id = azure.announce("vm3")
    assert vm3.wait_for_event("scheduled", event_id=event_id)["resource_name"] == "vm3"
    assert [event["event_id"] for event in vm3.ask("azure_events.list")["events"]] == [event_id]
    (result,) = vm3.ask("state.single", "azure_events.approved", event_id).values()
    assert result["result"] is True and azure.approvals(event_id) == ["vm3"]

    def events() -> list[str]:
        return [row["event_id"] for row in unsynced.master.run_runner("azure_events.status")["rows"]]

    wait_until(lambda: event_id in events(), "the event in what the engine knows")
    assert not (Path(vm3.config["extension_modules"]) / "modules").exists()


def test_ready_hooks_run_from_the_wheel(
    unsynced: Cluster, with_wheel: SaltInstallation, azure: Azure, tmp_path: Path
) -> None:
    vm3 = unsynced.minions["vm3"]
    healthy = tmp_path / "healthy"
    healthy.touch()
    hook = {"use": "health-file", "path": str(healthy), "wait": 0, "state_directory": str(tmp_path / "records")}
    unsynced.master.set_pillar(vm3={"azure_events": {"ready_hooks": [hook]}})
    assert vm3.ask("saltutil.refresh_pillar", wait=True) is True
    (step,) = vm3.ask("azure_events.check")["steps"]
    assert step["outcome"] == "ok", step
    # the engine asks for both
    event_id = azure.announce("vm3")
    wait_until(lambda: not healthy.exists(), "the end of the preparation")
    azure.end(event_id)
    wait_until(healthy.exists, "the end of the recovery")
    assert list(Path(vm3.config["cachedir"], "azure_events").glob("hooks*")) == []


def test_launcher_runs_from_the_wheel(with_wheel: SaltInstallation) -> None:
    (launcher,) = Path(with_wheel.python).parent.parent.glob("lib/python*/site-packages/azure_events_salt/hooks/log")
    ran = subprocess.run([launcher, "validate"], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
