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
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import yaml

from support.hosts.role_host import Azure, RoleHost, azure_of
from support.ready_hooks.workload_host import WorkloadHost
from support.recipes.printed import printed_in
from support.recipes.project import Project, own_environment, write_inventory
from support.repository import REPOSITORY
from support.wait import wait_until
from tools.repository.collection_tree import copy_tree

PLAYBOOK = "site.yml"


class PrintedPlay:
    """The play of a page, its hosts, and the event that it handles.

    ``page`` is the name of the page, without folder and suffix. ``project`` is the folder of a user, for the
    playbook and the inventory. ``hosts`` are the VMs of the play.

    Attributes:
        site: the host of the event, by default the first one.
    """

    def __init__(self, page: str, project: Project, hosts: list[RoleHost], azure: Azure) -> None:
        self.site = hosts[0]
        self._project, self._hosts, self._azure, self._event_id = project, hosts, azure, ""
        document = f"docs/ready-hooks/{page}.md"
        block = next(printed for printed in printed_in(document) if printed.language == "yaml")
        assert block.name == PLAYBOOK, f"{document}: the first YAML block is not {PLAYBOOK}"
        project.write(PLAYBOOK, block.text)
        (play,) = yaml.safe_load(block.text)
        write_inventory(project, play["hosts"], {site.host.name: site.host for site in hosts})

    def apply(self, *words: str) -> None:
        """Run the play as printed on all hosts; `words` are further arguments."""
        self._project.run(" ".join(["ansible-playbook -i hosts.yml", PLAYBOOK, *words])).must_succeed()

    def prepare(self, kind: str, vm: str = "") -> str:
        """Announce an event of a VM, wait until the VM is prepared, and return the id of the event."""
        self.site = next(site for site in self._hosts if vm in ("", site.host.name))
        wait_until(self.site.watches, "the daemon polls", self.site.log)
        self._event_id = self._azure.announce(kind, self.site.host.name)
        wait_until(lambda: self._prepared() in ("ok", "failed"), "the end of the preparation", self.site.log)
        assert self._prepared() == "ok", self.site.log()
        return self._event_id

    def recover(self) -> None:
        """End the event of `prepare`, and wait until the VM has recovered from it."""
        self._azure.simulator.post(f"/events/{self._event_id}/complete")
        wait_until(lambda: self.history().get("ended"), "the end of the recovery", self.site.log)
        runs = [run for run in self.history()["hooks"] if run["stage"] == "recover"]
        assert runs and {run["state"] for run in runs} == {"ok"}, self.site.log()

    def history(self) -> dict[str, Any]:
        """Return the history of the event; empty if there is none."""
        answer = self.site.ask("history", "--json", self._event_id)
        found = json.loads(answer.stdout) if answer.returncode == 0 else []
        return dict(found[0]) if found else {}

    def _prepared(self) -> str:
        events = [event for event in self.site.status().get("events", []) if event["event_id"] == self._event_id]
        return str(events[0]["prepared"]) if events else ""


@contextmanager
def printed_play(page: str, folder: Path, *hosts: WorkloadHost) -> Iterator[PrintedPlay]:
    """Simulate an Azure with these hosts as VMs, for the play of a page.

    The simulator's clock is stopped: an event lasts until `recover`, also an approved one.
    """
    collections = REPOSITORY / ".cache" / "trees" / "ansible"
    copy_tree(REPOSITORY, collections)
    environment = {**own_environment(folder), "ANSIBLE_COLLECTIONS_PATH": str(collections)}
    by_name = {host.host.name: host.host for host in hosts}
    with closing(Project(folder / page, environment)) as project, azure_of(by_name, folder) as azure:
        yield PrintedPlay(page, project, [RoleHost(host, folder, hooks=()) for host in by_name.values()], azure)


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
