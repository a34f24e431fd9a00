# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Executes docs/salt.md: its files and commands, in its order, have the documented effects."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.ready_hooks.web_server import WebServer
from support.repository import REPOSITORY
from support.salt.azure import Azure, simulated
from support.salt.cluster import Cluster, cluster
from support.salt.guide_reader import GuideRunner, blocks
from support.salt.master import Master
from support.salt.salt_installation import SaltInstallation
from support.salt.salt_process import ADDRESS, PORTS
from support.salt.tree_minion import MASTER_DIRS, MINION_DIRS, StepLog
from support.wait import wait_until
from tools.repository.collection_tree import copy_tree

# masters of one minion have the same ports
OTHER_ADDRESS = f"127.127.{ADDRESS.split('.', 2)[2]}"
NOBODY_LISTENS = "http://127.0.0.1:9"
SCHEDULE, COMPLETE = "imds_simulator schedule", "imds_simulator complete"
FLEET, HELD, FORCED = (
    "C7061BAC-AFDC-4513-B24B-AA5F13A16123",
    "4E1F8A52-6B7C-4D8E-9F0A-1B2C3D4E5F60",
    "5D2E9B63-7C8D-4E9F-8A1B-2C3D4E5F6071",
)
BY_ONE_RUN, NOTIFIED = "8F4A1C3E-2B5D-4C6E-9D7F-0A1B2C3D4E5F", "3B9D7E5C-1A2F-4B6D-8E0C-5F4A3B2C1D0E"
BY_HOOKS = "9C5E7A1B-3D2F-4B8C-A6E0-7F4D1C2B3A59"
BY_HAND, BY_STATES, BY_REACTOR = (
    "0B3AD7F5-3E2C-4B3B-9A5C-1F8E7D6C5B4A",
    "6D1C2B3A-4F5E-4A6B-8C7D-9E0F1A2B3C4D",
    "A7E9C1D2-5B4F-4E3D-9C8B-7A6F5E4D3C2B",
)

# the sections that each test follows to their end
ONE_VM_SECTIONS = (
    "A first reaction in five minutes",
    "Maintenance of one VM",
    "By hand",
    "In a state run",
    "By a reactor",
    "Ready hooks",
)
FLEET_SECTIONS = ("Maintenance of a fleet", "Hold, release and force", "Notifications")
FOLLOWED = {
    *ONE_VM_SECTIONS,
    *FLEET_SECTIONS,
    "Without a master",
    "Several masters",
    "Push to Event-Driven Ansible",
    "From git",
    "As a Python package",
    "Nothing is prepared",
    # tests/system/windows/minion starts a minion; tests/unit/project/test_salt_docs.py checks its steps
    "Windows minions",
}


def test_every_block_is_followed() -> None:
    assert {block.section for block in blocks()} == FOLLOWED


@pytest.mark.parametrize(
    "text", [block.text for block in blocks() if block.language == "yaml" and "{%" not in block.text]
)
def test_configuration_that_is_shown_is_yaml(text: str) -> None:
    assert isinstance(yaml.safe_load(text), dict)


class Machines:
    """Unconfigured masters and minions, and runners of the guide for them."""

    def __init__(self, installation: SaltInstallation, end: ExitStack) -> None:
        self.installation = installation
        self._end = end

    def cluster(self, *minions: str, **config: Any) -> Cluster:
        # otherwise the commands of the guide count a slow minion as absent
        here = self._end.enter_context(
            cluster(self.installation, [], **{"timeout": 240, "gather_job_timeout": 30, **config})
        )
        here.master.configure(
            pillar_roots={"base": [str(here.folder / "srv" / "pillar")]},
            file_roots={"base": [str(here.folder / "srv" / "salt")]},
        )
        for name in minions:
            # no test connects to the address of Azure
            here.minion(name, azure_events={"endpoint": NOBODY_LISTENS})
        return here

    def second_master(self, here: Cluster, **config: Any) -> Master:
        """Return a second master of a cluster, with the same key."""
        ports = {name: here.master.config[name] for name in ("publish_port", "ret_port")}
        other = Master(here.folder / "salt2", self.installation, [], interface=OTHER_ADDRESS, **ports, **config)
        keys = [Path(here.master.config["pki_dir"], name) for name in ("master.pem", "master.pub")]
        wait_until(lambda: all(key.exists() for key in keys), "the key of the first master")
        for key in keys:
            copy = Path(other.config["pki_dir"], key.name)
            copy.parent.mkdir(exist_ok=True)
            shutil.copy(key, copy)
        self._end.callback(other.kill)
        other.start()
        return other

    def reader(self, here: Cluster, *sections: str, places: dict[str, str] | None = None, **more: Any) -> GuideRunner:
        reader = GuideRunner(here, sections, places, **more)
        self._end.callback(reader.close)
        return reader


@pytest.fixture
def machines(installation: SaltInstallation) -> Iterator[Machines]:
    with ExitStack() as end:
        yield Machines(installation, end)


@pytest.mark.all
@pytest.mark.xdist_group("guide-one")
def test_first_reaction_and_maintenance_of_one_vm(machines: Machines) -> None:
    here = machines.cluster("web1")
    # the records of the hooks belong into this folder, too; the port may be in use
    places = {"{use: ": f"{{state_directory: {here.folder / 'records'}, use: ", "8080": str(next(PORTS))}
    reader = machines.reader(here, *ONE_VM_SECTIONS, places=places)
    leaving, prepared = (reader.run_folder / name for name in ("leaving", "prepared"))
    reader.go_on(SCHEDULE)
    wait_until(leaving.exists, "the file of the reaction")
    reader.go_on(COMPLETE)
    wait_until(lambda: not leaving.exists(), "the end of it")
    reader.go_on("azure_events.approve event_ids=" + BY_HAND)
    assert prepared.exists() and reader.approvals(BY_HAND) == ["web1"]
    reader.go_on("azure_events.recover " + BY_HAND)
    assert not prepared.exists()
    reader.go_on("azure_events.prepare_and_approve")
    assert prepared.exists() and reader.approvals(BY_STATES) == ["web1"]
    reader.go_on("azure_events.recover concurrent=True")
    assert not prepared.exists()
    assert "Failed:    0" in reader.go_on("state.apply freeze")
    assert not prepared.exists() and reader.approvals(BY_ONE_RUN) == ["web1"]
    reader.go_on(SCHEDULE)
    wait_until(lambda: reader.approvals(BY_REACTOR), "the approval by the reactor")
    assert prepared.exists()
    reader.go_on(COMPLETE)
    wait_until(lambda: not prepared.exists(), "the recovery by the reactor")
    assert reader.approvals(BY_REACTOR) == ["web1"]
    healthy, log = (reader.run_folder / name for name in ("healthy", "events.jsonl"))
    reader.go_on("azure_events.check")
    assert healthy.exists()
    reader.go_on()
    wait_until(lambda: not healthy.exists(), "the preparation by the ready hooks")
    wait_until(lambda: reader.approvals(BY_HOOKS), "the approval by the reactor")
    wait_until(healthy.exists, "the recovery by the ready hooks")
    wait_until(lambda: len(log.read_text().splitlines()) == 2, "a line for each stage")


class Balancer:
    """Create the guide's commands for the load balancer; each writes a line."""

    def __init__(self, folder: Path) -> None:
        self._done = folder / "balancer"
        self.places: dict[str, str] = {}
        for name in ("leave-load-balancer", "join-load-balancer"):
            script = folder / name
            script.write_text(f'#!/bin/sh\necho "{name.partition("-")[0]} $EVENT_RESOURCE" >> {self._done}\n')
            script.chmod(0o755)
            self.places["/usr/local/bin/" + name] = str(script)

    def count(self, line: str) -> int:
        return self._done.read_text().splitlines().count(line) if self._done.exists() else 0


@pytest.mark.all
@pytest.mark.xdist_group("guide-fleet")
def test_maintenance_of_a_fleet(machines: Machines) -> None:
    here = machines.cluster("web1", "web2")
    balancer = Balancer(here.folder)
    reader = machines.reader(here, *FLEET_SECTIONS, places=balancer.places)
    with WebServer() as endpoint:
        reader.places["https://hooks.example.com"] = endpoint.url
        reader.go_on("--scenario")
        for number, minion in enumerate(here.minions.values()):
            minion.configure(azure_events={"endpoint": reader.places[f"http://127.0.0.1:{8169 + number}"]})
        reader.go_on("azure_events.fleet")
        for event_id, command in ((FLEET, ""), (HELD, "azure_events.release"), (FORCED, "force=True")):
            reader.go_on(SCHEDULE)
            if command:
                here.master.bus.wait(f"salt/azure_events/{event_id}/held")
                assert reader.approvals(event_id) == []
                reader.go_on(command)
            here.master.bus.wait(f"salt/azure_events/{event_id}/started")
            reader.go_on(COMPLETE)
            here.master.bus.wait(f"salt/azure_events/{event_id}/recovered")
            assert len(reader.approvals(event_id)) == 1
        assert [
            balancer.count("{} {}".format(*line))
            for line in (("leave", "web1"), ("join", "web1"), ("leave", "web2"), ("join", "web2"))
        ] == [3, 3, 2, 2]
        reader.go_on()
        reader.run(
            "in another terminal", "python3 -m imds_simulator schedule --type Freeze --resources web2 --id " + NOTIFIED
        )
        approved = wait_until(lambda: [each for each in endpoint.requests if each.json["step"] == "approved"])
        assert (approved[0].target, approved[0].json["event_id"]) == ("/azure-events", NOTIFIED)


@pytest.fixture
def web1() -> Iterator[Azure]:
    """An Azure with one VM."""
    with simulated({"web": {"vms": {"web1": {}}}}) as running:
        yield running


@pytest.mark.all
@pytest.mark.xdist_group("guide-one")
def test_maintenance_without_a_master(machines: Machines, web1: Azure) -> None:
    here = machines.cluster("web1")
    # a short interval, and the simulator instead of Azure
    places = {
        "seconds: 15": "seconds: 2",
        "seconds: 60": "seconds: 2",
        "azure_events:\n": f"azure_events:\n  endpoint: {web1.endpoints['web1']}\n",
    }
    reader = machines.reader(here, "Without a master", places=places, has_master=False)
    reader.go_on()
    event_id = web1.announce("web1", kind="Freeze", notice="4h")
    wait_until(lambda: web1.approvals(event_id), "the approval")
    leaving = reader.run_folder / "leaving"
    assert leaving.exists()
    web1.end(event_id)
    wait_until(lambda: not leaving.exists(), "the recovery")
    assert len(web1.approvals(event_id)) == 1


@pytest.mark.all
@pytest.mark.xdist_group("guide-masters")
def test_several_masters(machines: Machines, web1: Azure) -> None:
    here = machines.cluster(engines=[{"azure_events": {}}], **MASTER_DIRS)
    settings = {"endpoint": web1.endpoints["web1"]}
    minion = here.minion("web1", azure_events=settings, beacons={"azure_events": [{"interval": 1}]}, **MINION_DIRS)
    step_log = StepLog(minion)
    here.master.configure(pillar_roots={"base": [str(here.master.pillar)]})
    here.start()
    other = machines.second_master(here, engines=[{"azure_events": {}}], **MASTER_DIRS)
    for master in (here.master, other):
        master.set_pillar(web1=step_log.pillar())
    api = next(PORTS)
    places = {
        "[salt1, salt2]": json.dumps([master.config["interface"] for master in (here.master, other)]),
        "port: 8000": f"port: {api}\n  host: {ADDRESS}",
        "salt1:8000": f"{ADDRESS}:{api}",
        "/etc/salt/api": str(here.folder / "api"),
    }
    certificate(here.folder)
    reader = machines.reader(here, "Several masters", places=places, masters={"salt1": here.master, "salt2": other})
    reader.go_on("restart salt-minion")
    other.wait_for("web1")

    event_id = web1.announce("web1", kind="Freeze", notice="4h")
    for master in (here.master, other):
        master.bus.wait(f"salt/azure_events/{event_id}/prepared")
    wait_until(lambda: web1.approvals(event_id), "the approval")
    web1.simulator.advance(2)
    web1.end(event_id)
    for master in (here.master, other):
        master.bus.wait(f"salt/azure_events/{event_id}/recovered")
    assert step_log.counts == (1, 1) and len(web1.approvals(event_id)) == 1

    other.configure(engines=[])
    reader.go_on()
    asked = len(here.master.bus.events("salt/job/*/new", fun="azure_events.status"))
    # the other master has sent this hint, not a beacon
    other.wait_for("web1")
    other.run_runner("event.send", "salt/beacon/web1/azure_events/scheduled", {"event_id": "A", "id": "web1"})
    here.master.bus.wait("salt/netapi/hook/azure_events")
    here.master.bus.wait_for_more("salt/job/*/new", asked, fun="azure_events.status")


@pytest.mark.all
@pytest.mark.xdist_group("guide-masters")
def test_push_to_event_driven_ansible(machines: Machines, web1: Azure) -> None:
    here = machines.cluster()
    settings = {"endpoint": web1.endpoints["web1"]}
    here.minion("web1", azure_events=settings, beacons={"azure_events": [{"interval": 1}]}, **MINION_DIRS)
    here.start()
    headers = ("/etc/salt/azure_events_push.headers", str(here.folder / "headers"))
    with WebServer() as endpoint:
        places = {"https://eda.example.com:5000": endpoint.url, headers[0]: headers[1]}
        reader = machines.reader(here, "Push to Event-Driven Ansible", places=places)
        reader.go_on("install -m 0600")
        copied = here.folder / "srv" / "reactor" / "azure_events_push.sls"
        text = copied.read_text()
        assert headers[0] in text
        copied.write_text(text.replace(*headers))
        reader.go_on()
        event_id = web1.announce("web1", kind="Freeze", notice="4h")
        wait_until(lambda: endpoint.requests, "the push")
        assert endpoint.requests[0].headers["authorization"] == "Bearer TOKEN"
        assert endpoint.requests[0].json["event"]["event_id"] == event_id


def certificate(folder: Path) -> None:
    """Create a self-signed certificate for salt-api."""
    names = ["-subj", "/CN=salt1", "-addext", f"subjectAltName=IP:{ADDRESS}"]
    files = ["-keyout", str(folder / "api.key"), "-out", str(folder / "api.crt")]
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *names, *files],
        check=True,
        capture_output=True,
    )


@pytest.mark.all
@pytest.mark.xdist_group("guide-install")
def test_installation_from_git(machines: Machines, tmp_path: Path) -> None:
    here = machines.cluster("web1")
    reader = machines.reader(
        here,
        "From git",
        places={"https://github.com/azure-imds/scheduled_events.git": f"file://{repository(tmp_path)}"},
    )
    reader.go_on()
    minion = here.minions["web1"]
    assert minion.ask("azure_events.status")["version"] == 1
    files = minion.ask("cp.list_master")
    assert {"azure_events/prepare_and_approve.sls", "azure_events/hooks/ready_hooks/cli.py"} <= set(files)
    copies = Path(here.master.config["extension_modules"])
    assert (copies / "runners" / "azure_events.py").exists() and (copies / "engines" / "azure_events.py").exists()


def repository(folder: Path) -> Path:
    """Return this checkout as a repository with the single branch main."""
    tree = copy_tree(REPOSITORY, folder / "tree")
    user = ["-c", "user.name=test", "-c", "user.email=test"]
    for words in (
        ["checkout", "--quiet", "-b", "main"],
        ["add", "--all"],
        [*user, "commit", "--quiet", "--message=test"],
    ):
        subprocess.run(["git", *words], cwd=tree, check=True, capture_output=True)
    bare = folder / "scheduled_events.git"
    subprocess.run(["git", "clone", "--quiet", "--bare", str(tree), str(bare)], check=True, capture_output=True)
    return bare


@pytest.mark.all
@pytest.mark.xdist_group("guide-install")
def test_installation_as_a_package(machines: Machines, installation: SaltInstallation, tmp_path: Path) -> None:
    environment = installation.shared_by(tmp_path / "venv")
    machines.installation = environment
    here = machines.cluster("web1")
    here.master.configure(file_roots={"base": [str(REPOSITORY / "salt")]})
    here.start()
    minion = here.minions["web1"]
    minion.ask("saltutil.sync_all")
    copies = Path(minion.config["extension_modules"])
    assert (copies / "modules" / "azure_events.py").exists()
    reader = machines.reader(here, "As a Python package")
    reader.folders = {
        place: copy_tree(REPOSITORY, tmp_path / "tree")
        for place in ("in the checkout", "on each minion and on the master")
    }
    here.master.configure(file_roots={"base": [str(here.folder / "srv" / "salt")]})
    here.master.kill()
    here.start()
    reader.go_on()
    here.minions["web1"].kill()
    here.start()
    assert (
        not (copies / "modules" / "azure_events.py").exists() and not (copies / "utils" / "azure_events_steps").exists()
    )
    assert minion.ask("azure_events.status")["version"] == 1
    assert minion.ask("cp.list_master").count("azure_events/prepare.sls") == 1


@pytest.mark.all
@pytest.mark.xdist_group("guide-fleet")
def test_troubleshooting(machines: Machines, web1: Azure) -> None:
    here = machines.cluster(**MASTER_DIRS)
    settings = {"endpoint": web1.endpoints["web1"]}
    here.minion("web1", azure_events=settings)
    here.start()
    reader = machines.reader(here, "Nothing is prepared")
    reader.go_on("no engine answers")
    here.master.configure(engines=[{"azure_events": {}}])
    here.master.kill()
    here.start()
    reader.go_on("is not available")
    here.minions["web1"].configure(beacons={"azure_events": [{"interval": 1}]}, **MINION_DIRS)
    here.minions["web1"].kill()
    here.start()
    web1.announce("web1", notice="4h", id=BY_HAND)
    reader.go_on()
