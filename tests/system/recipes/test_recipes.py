# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The short recipes of README, docs/ansible.md and the role imds_simulator."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.hosts.lab import Lab
from support.ready_hooks.web_server import Answer, Request, WebServer
from support.recipes.fleet import Fleet
from support.recipes.printed import printed_in
from support.recipes.project import Project, write_connections, write_inventory
from support.repository import REPOSITORY
from support.wait import wait_until

pytestmark = pytest.mark.all

COLLECTION = "/api/v3/collections/azure_imds/scheduled_events/"
README, GUIDE, SIMULATOR = "README.md", "docs/ansible.md", "roles/imds_simulator/README.md"
BY_NAME = "ansible-galaxy collection install azure_imds.scheduled_events"
BY_FILE = "ansible-galaxy collection install --requirements-file requirements.yml"
ASK = "ansible web --module-name azure_imds.scheduled_events.event_info"
DRAIN_EARLY = "ansible-playbook drain-early.yml"
(REHEARSE,) = (printed.name for printed in printed_in(GUIDE) if "imds_simulator exec" in printed.name)
REHEARSAL = "- name: Rehearse a live migration on the staging web servers"
WAIT = (
    "ansible staging_web --inventory hosts.yml"
    " --module-name azure_imds.scheduled_events.event_wait --args state=scheduled"
)


@contextlib.contextmanager
def serve_galaxy(archive: Path) -> Iterator[str]:
    """Serve this archive as a release on a Galaxy server, and yield the URL of its API."""
    version = archive.name.removesuffix(".tar.gz").rpartition("-")[2]
    content = archive.read_bytes()
    with WebServer() as server:
        release: dict[str, Any] = {
            "version": version,
            "href": f"{COLLECTION}versions/{version}/",
            "namespace": {"name": "azure_imds"},
            "collection": {"name": "scheduled_events"},
            "download_url": f"{server.url}/{archive.name}",
            "artifact": {"filename": archive.name, "sha256": hashlib.sha256(content).hexdigest()},
            "metadata": {"dependencies": {}},
            "signatures": [],
        }
        pages: dict[str, Any] = {
            "/api/": {"available_versions": {"v3": "v3/"}},
            COLLECTION: {"updated_at": "2026-11-21T10:00:00Z"},
            COLLECTION + "versions/": {"meta": {"count": 1}, "links": {"next": None}, "data": [{"version": version}]},
            release["href"]: release,
        }

        def answer(request: Request) -> Answer:
            path = request.target.partition("?")[0]
            if path == f"/{archive.name}":
                return Answer(200, content, {"Content-Type": "application/gzip"})
            page = pages.get(path)
            return Answer(200 if page else 404, json.dumps(page).encode(), {"Content-Type": "application/json"})

        server.otherwise = answer
        yield f"{server.url}/api/"


@pytest.mark.follows(README, BY_NAME)
@pytest.mark.follows(GUIDE, "requirements.yml", BY_FILE)
def test_commands_install_a_release(archive: Path, project: Project) -> None:
    with serve_galaxy(archive) as url:
        project.set("ANSIBLE_GALAXY_SERVER", url)
        for command in (BY_NAME, BY_FILE):
            home = project.folder / f"home{len(command)}"
            project.set("ANSIBLE_HOME", str(home))
            project.run(command).must_succeed()
            assert (home / "collections/ansible_collections/azure_imds/scheduled_events/MANIFEST.json").is_file()


@pytest.mark.follows(GUIDE, "update.yml")
def test_update_skips_hosts_with_events_or_unknown_state(fleet: Callable[..., Fleet], project: Project) -> None:
    web = fleet("web1", "web2", "web3")
    web.announce("Reboot", "web1")
    web.azure.post("/faults", {"kind": "unavailable", "vm": "web3"})
    write_inventory(project, "web", web.hosts)
    project.run("ansible-playbook --inventory hosts.yml update.yml").must_succeed()
    assert web.steps() == ["web2 update-site"]


@pytest.mark.follows(GUIDE, "approve.yml")
def test_approve_takes_user_restarts_and_short_freezes_only(fleet: Callable[..., Fleet], project: Project) -> None:
    web = fleet("web1", "web2")
    web.announce("Reboot", "web1", source="User")
    web.announce("Freeze", "web2", duration=5)
    redeploy = web.announce("Redeploy", "web2")
    write_inventory(project, "web", web.hosts)
    project.run("ansible-playbook --inventory hosts.yml approve.yml").must_succeed()
    web.wait_until("Reboot web1 finished")
    web.wait_until("Freeze web2 finished")
    assert sorted(step for step in web.steps() if "approved" in step) == ["web1 approved", "web2 approved"]
    assert web.azure.get(f"/events/{redeploy}")["status"] == "Scheduled"


@pytest.mark.follows(README, "daemon.yml")
def test_daemon_prepares_approves_and_recovers(fleet: Callable[..., Fleet], project: Project) -> None:
    web = fleet("daemon1")
    host = web.hosts["daemon1"]
    ready = host.file("/srv/health/ready")
    ready.parent.mkdir(parents=True)
    ready.touch()
    write_inventory(project, "web", web.hosts)
    project.run("ansible-playbook --inventory hosts.yml daemon.yml").must_succeed()
    event_id = web.announce("Reboot", "daemon1", source="User", started_for="1h")
    web.wait_until("daemon1 approved")
    assert not ready.exists()
    wait_until(
        lambda: "Started" in host.run(["azure-scheduled-events", "status"], check=False).stdout,
        "Started in the status of the daemon",
    )
    web.azure.post(f"/events/{event_id}/complete")
    wait_until(ready.exists, "the recover hook")
    wait_until(
        lambda: "completed" in host.run(["azure-scheduled-events", "history"]).stdout,
        "completed in the history of the daemon",
    )


@pytest.mark.follows(GUIDE, "ansible.cfg", "drain-early.yml", DRAIN_EARLY)
def test_only_vms_with_an_interrupting_event_and_enough_time_leave(
    fleet: Callable[..., Fleet], project: Project
) -> None:
    web = fleet("web1", "web2", "web3")
    web.announce("Reboot", "web1")
    web.announce("Freeze", "web2", duration=5)
    web.announce("Redeploy", "web3", notice="50s")
    project.write_yaml("inventory/hosts.yml", {"web": {"hosts": dict.fromkeys(web.hosts)}})
    write_connections(project, web.hosts, "inventory/")
    ran = project.run(DRAIN_EARLY).must_succeed()
    assert [step for step in web.steps() if "leave-load-balancer" in step] == ["web1 leave-load-balancer"]
    (left,) = set(re.findall(r"ok: \[web1\][^}]*Reboot of web1 in (\d+) s", ran.text))
    # 25 minutes of notice, less the time that the playbook took
    assert 600 < int(left) <= 1500


@pytest.mark.follows(GUIDE, "ansible.cfg", ASK)
def test_settings_are_read_and_a_host_returns_its_events(fleet: Callable[..., Fleet], project: Project) -> None:
    web = fleet("web1")
    event_id = web.announce("Freeze", "web1")
    write_inventory(project, "web", web.hosts, "inventory/")
    assert event_id in project.run(ASK).must_succeed().text
    settings = dict(
        re.findall(
            r"^(\w+)\(.*\) = (.*)$",
            project.run("ansible-config dump --only-changed --type all").must_succeed().text,
            re.MULTILINE,
        )
    )
    printed = (project.folder / "ansible.cfg").read_text(encoding="utf-8")
    assert settings["DEFAULT_FORKS"] == "50" and settings["pipelining"] == "True"
    assert settings["ssh_args"] == re.findall(r"^ssh_args = (.*)$", printed, re.MULTILINE)[0]


@pytest.mark.skipif(not shutil.which("ssh"), reason="needs ssh to read the options of the guide")
def test_ssh_accepts_the_options() -> None:
    texts = [(REPOSITORY / document).read_text(encoding="utf-8") for document in (GUIDE, "docs/bounds.md")]
    (options,) = {option for text in texts for option in re.findall(r"^ssh_args = (.*)$", text, re.MULTILINE)}
    shown = subprocess.run(
        ["ssh", "-G", *options.split(), "web1"], capture_output=True, text=True, timeout=60, check=True
    ).stdout.splitlines()
    assert {"serveraliveinterval 10", "serveralivecountmax 3"} <= set(shown)


@pytest.mark.follows(GUIDE, REHEARSE)
def test_rehearsal_succeeds(project: Project) -> None:
    assert "prepared" in project.run(REHEARSE).must_succeed().text


@pytest.mark.follows(SIMULATOR, REHEARSAL)
def test_simulator_announces_a_freeze_on_a_staging_host(lab: Lab, project: Project) -> None:
    project.take_as("rehearse.yml", SIMULATOR, REHEARSAL)
    write_inventory(project, "staging_web", {"staging1": lab.host("staging1")})
    project.run("ansible-playbook --inventory hosts.yml rehearse.yml").must_succeed()
    assert '"event_type": "Freeze"' in project.run(WAIT).must_succeed().text
