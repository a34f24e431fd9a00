# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Salt: the output of docs/troubleshooting.md for each symptom, and the effect of the remedy."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.salt.azure import Azure, simulated
from support.salt.cluster import Cluster, cluster
from support.salt.guide_reader import GuideRunner
from support.salt.salt_installation import SaltInstallation
from support.salt.tree_minion import MASTER_DIRS, MINION_DIRS
from support.troubleshooting.page import Section
from support.wait import wait_until

pytestmark = [pytest.mark.all, pytest.mark.xdist_group("guide-trouble")]

NAMES = ("web1", "web2")
GROUPS = {"web": {"kind": "availability_set", "vms": {name: {} for name in NAMES}}}


class Site:
    """A master with an engine, and a minion for each of two VMs, whose steps fail while a file exists."""

    def __init__(self, here: Cluster, azure: Azure) -> None:
        self.here, self.azure = here, azure
        for name in NAMES:
            settings = {"endpoint": azure.endpoints[name]}
            here.minion(name, azure_events=settings, beacons={"azure_events": [{"interval": 1}]}, **MINION_DIRS)
        here.master.set_pillar(**{name: {"azure_events": self._steps(name)} for name in NAMES})
        here.start()
        self._reader = GuideRunner(here, ())

    def announce(self, section: Section, *names: str) -> str:
        return self.azure.announce(*(names or NAMES), kind="Freeze", notice="4h", id=section.event_id)

    def run(self, command: str) -> tuple[int, str]:
        """Run a command of the page on the master; return its exit code and its output."""
        ran = subprocess.run(
            ["sh", "-c", command],
            env=self._reader.environment,
            cwd=self.here.folder,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        text = ran.stdout
        for name, endpoint in self.azure.endpoints.items():
            text = text.replace(endpoint, "http://169.254.169.254").replace(str(self.here.folder / name), "/srv")
        return ran.returncode, text

    def wait_for_table(self, event_id: str, *texts: str) -> None:
        command = f"salt-run azure_events.status {event_id} table=True"
        wait_until(lambda: all(text in self.run(command)[1] for text in texts), lambda: self.run(command)[1])

    def file(self, name: str, file: str) -> Path:
        return self.here.folder / name / file

    def _steps(self, name: str) -> dict[str, Any]:
        def step(verb: str, stage: str) -> dict[str, str]:
            broken = self.file(name, f"fail-{stage}")
            command = f"if test -e {broken}; then echo 'lb1.example.com: connection refused' >&2; exit 1; fi"
            return {"name": verb, "command": command}

        return {
            "prepare": [step("leave the load balancer", "prepare")],
            "recover": [step("join the load balancer", "recover")],
        }


@pytest.fixture(scope="module")
def running(installation: SaltInstallation) -> Iterator[Site]:
    # the engine polls minions without a maintenance more often than by default
    master: dict[str, Any] = {"engines": [{"azure_events": {}}], "azure_events": {"sweep": "10s"}, **MASTER_DIRS}
    with simulated(GROUPS) as azure, cluster(installation, **master) as here:
        yield Site(here, azure)


@pytest.fixture
def site(running: Site) -> Iterator[Site]:
    yield running
    for name in NAMES:
        running.file(name, "fail-prepare").unlink(missing_ok=True)
        running.file(name, "fail-recover").unlink(missing_ok=True)
    for event in running.azure.simulator.get("/events")["events"]:
        if event["status"] in ("Scheduled", "Started"):
            running.azure.end(event["id"])
            running.here.master.bus.wait(f"salt/azure_events/{event['id']}/recovered")


def test_minion_that_does_not_answer_is_named(site: Site) -> None:
    section = Section("A minion does not answer")
    site.here.minions["web2"].kill()
    event_id = site.announce(section)
    site.wait_for_table(event_id, "minion web2 does not answer", "prepared")
    section.see(site.run)
    section.take("sh")
    site.here.minions["web2"].start()
    site.here.master.bus.wait(f"salt/azure_events/{event_id}/approved")
    section.see(site.run)
    assert section.left == []


def test_step_that_fails_is_prepared_again_by_the_runner(site: Site) -> None:
    section = Section("A step of the preparation fails")
    site.file("web2", "fail-prepare").touch()
    event_id = site.announce(section)
    site.here.master.bus.wait(f"salt/azure_events/{event_id}/failed")
    site.wait_for_table(event_id, "minion web2: failed")
    section.see(site.run)
    site.file("web2", "fail-prepare").unlink()
    section.see(site.run)
    site.here.master.bus.wait(f"salt/azure_events/{event_id}/approved")
    section.see(site.run)
    assert section.left == []


def test_minion_that_stays_prepared_recovers_by_the_runner(site: Site) -> None:
    section = Section("A minion stays prepared")
    site.file("web2", "fail-recover").touch()
    event_id = site.announce(section, "web2")
    site.here.master.bus.wait(f"salt/azure_events/{event_id}/approved")
    site.azure.simulator.advance(2)
    site.wait_for_table(event_id, "not before -")  # the engine knows that the event has started
    site.azure.end(event_id)
    site.wait_for_table(event_id, "recover: failed")
    section.see(site.run, 0, 0)
    site.file("web2", "fail-recover").unlink()
    section.see(site.run)
    site.here.master.bus.wait(f"salt/azure_events/{event_id}/recovered")
    assert section.left == []


def test_minion_whose_imds_fails_is_named(site: Site) -> None:
    section = Section("IMDS fails on a minion")
    with site.azure.fault("forbidden-html", "web2"):
        wait_until(lambda: "403" in site.run("salt-run azure_events.fleet")[1], timeout=300)
        section.see(site.run)
    wait_until(lambda: "403" not in site.run("salt-run azure_events.fleet")[1], timeout=300)
    section.see(site.run)
    assert section.left == []
