# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The play that a page of docs/ready-hooks prints, applied as printed, and an event of a simulated Azure.

    with printed_play("systemd-units", folder, host) as play:
        play.apply()
        play.prepare("Reboot")
        ...                         # assert the effects of the preparation
        play.recover()
        ...                         # assert the effects of the recovery

The first YAML block of the page has to be a complete play, with the comment `# site.yml`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from support import simulator_process
from support.hosts.bridge import IMDS
from support.ready_hooks.workload_host import Completed, WorkloadHost
from support.recipes.printed import printed_in
from support.recipes.project import Project, own_environment, write_inventory
from support.repository import REPOSITORY
from support.simulator_process import Simulator
from support.wait import wait_until
from tools.repository.collection_tree import copy_tree

COMMAND = "azure-scheduled-events"
SERVICE = "azure-scheduled-events.service"
PLAYBOOK = "site.yml"
# of the daemon, after a test; the library of ready hooks stays for others
LEFT_BEHIND = ("/etc/azure-scheduled-events", "/run/azure-scheduled-events", "/var/lib/azure-scheduled-events")


class PrintedPlay:
    """The play of a page, its hosts, and the event that it handles.

    ``page`` is the name of the page, without folder and suffix. ``project`` is the folder of a user, for the
    playbook and the inventory. ``hosts`` are the VMs of the play, by name.
    """

    def __init__(self, page: str, project: Project, hosts: dict[str, WorkloadHost], azure: Simulator) -> None:
        self.hosts, self.azure = hosts, azure
        self._project, self._event_id, self._vm = project, "", ""
        document = f"docs/ready-hooks/{page}.md"
        block = next(printed for printed in printed_in(document) if printed.language == "yaml")
        assert block.name == PLAYBOOK, f"{document}: the first YAML block is not {PLAYBOOK}"
        project.write(PLAYBOOK, block.text)
        (play,) = yaml.safe_load(block.text)
        write_inventory(project, play["hosts"], {name: host.host for name, host in hosts.items()})

    def apply(self, *words: str) -> str:
        """Run the play as printed on all hosts, and return its output; `words` are further arguments."""
        return self._project.run(" ".join(["ansible-playbook -i hosts.yml", PLAYBOOK, *words])).must_succeed().text

    def prepare(self, kind: str = "Reboot", vm: str = "", **event: Any) -> str:
        """Announce an event, wait until the VM is prepared, and return the id of the event.

        ``vm`` is by default the first one; ``event`` has further members of the request to the simulator.
        """
        self._vm = vm or next(iter(self.hosts))
        wait_until(lambda: self.status().get("imds", {}).get("ok"), "the daemon polls", self.explain)
        request = {"type": kind, "resources": [self._vm], **event}
        self._event_id = str(self.azure.post("/events", request)["id"])
        wait_until(lambda: self._prepared() in ("ok", "failed"), "the end of the preparation", self.explain)
        assert self._prepared() == "ok", self.explain()
        return self._event_id

    def recover(self) -> None:
        """End the event of `prepare`, and wait until the VM has recovered from it."""
        self.azure.post(f"/events/{self._event_id}/complete")
        wait_until(lambda: self.history().get("ended"), "the end of the recovery", self.explain)
        runs = [run for run in self.history()["hooks"] if run["stage"] == "recover"]
        assert runs and {run["state"] for run in runs} == {"ok"}, self.explain()

    def ask(self, *words: str) -> Completed:
        """Run azure-scheduled-events on the VM of the event."""
        return self._host.run(COMMAND, *words, check=False)

    def status(self) -> dict[str, Any]:
        """Return the status of the daemon; empty if it does not answer."""
        answer = self.ask("status", "--json")
        return dict(json.loads(answer.stdout)) if answer.returncode in (0, 1) and answer.stdout else {}

    def history(self) -> dict[str, Any]:
        """Return the history of the event; empty if there is none."""
        answer = self.ask("history", "--json", self._event_id)
        found = json.loads(answer.stdout) if answer.returncode == 0 else []
        return dict(found[0]) if found else {}

    def explain(self) -> str:
        """Return the history of the event and the log of the daemon, for the messages of failed tests."""
        log = self._host.run("journalctl", "--no-pager", "--lines=60", "--output=cat", f"--unit={SERVICE}", check=False)
        return self.ask("history", self._event_id).stdout + log.stdout if self._event_id else log.stdout

    @property
    def _host(self) -> WorkloadHost:
        return self.hosts[self._vm or next(iter(self.hosts))]

    def _prepared(self) -> str:
        events = [event for event in self.status().get("events", []) if event["event_id"] == self._event_id]
        return str(events[0]["prepared"]) if events else ""


@contextmanager
def printed_play(page: str, folder: Path, *hosts: WorkloadHost) -> Iterator[PrintedPlay]:
    """Simulate an Azure with these hosts as VMs, for the play of a page; stop the daemons at the end.

    The simulator's clock is stopped: an event lasts until `recover`, also an approved one.
    """
    collections = REPOSITORY / ".cache" / "trees" / "ansible"
    copy_tree(REPOSITORY, collections)
    environment = own_environment(folder) | {
        "PATH": f"{Path(sys.executable).parent}:/usr/sbin:/usr/bin:/sbin:/bin",
        "ANSIBLE_COLLECTIONS_PATH": str(collections),
        "ANSIBLE_CONNECTION_PLUGINS": str(REPOSITORY / "tests" / "support" / "hosts" / "connection"),
        "PYTHONPATH": str(REPOSITORY / "tests"),
    }
    by_name = {host.host.name: host for host in hosts}
    vms = {name: {"source": host.host.address} for name, host in by_name.items()}
    scenario = {"groups": {"set": {"kind": "availability_set", "vms": vms}}, "knobs": {"rate_limit": 0}}
    project = Project(folder / page, environment)
    with simulator_process.start(scenario, ["--clock", "manual"], listen=f"{IMDS}:80") as azure:
        try:
            yield PrintedPlay(page, project, by_name, azure)
        finally:
            project.close()
            for host in hosts:
                if host.host.is_up:
                    host.run("systemctl", "disable", "--now", SERVICE, check=False)
                    host.run("rm", "-rf", *LEFT_BEHIND)


def entries(page: str) -> list[dict[str, Any]]:
    """Return the entries of all lists `hook_runner_ready_hooks` that a page prints, in their order."""
    blocks = [printed for printed in printed_in(f"docs/ready-hooks/{page}.md") if printed.language == "yaml"]
    return [entry for block in blocks for entry in _entries_in(yaml.safe_load(block.text))]


def options_of(entry: dict[str, Any]) -> dict[str, Any]:
    """Return the options of the hook: all keys but those of the role."""
    return {name: value for name, value in entry.items() if name not in ("use", "settings")}


def _entries_in(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield from value.get("hook_runner_ready_hooks", ())
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _entries_in(each)
