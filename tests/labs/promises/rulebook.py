# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The rulebook maintenance, which starts the playbook by its event source."""

from __future__ import annotations

import json
from pathlib import Path

from promises.coordinators import LIMITS, Playbook
from promises.world import World
from support.eda.rulebook import Rulebook
from support.wait import wait_until

# seconds; a run that was lost is repeated a minute after the end of the event
LIMIT = 300.0


class RulebookEngine(Playbook):
    """ansible-rulebook on the machine of the controller, whose event source polls as one of the VMs."""

    name = "rulebook"

    def __init__(self, world: World, collections: Path) -> None:
        super().__init__(world, collections)
        inventory = json.loads((world.folder / "inventory.json").read_text())
        inventory["all"]["vars"].update(
            chaos_run="rulebook",
            maintenance_prepare=str(world.folder / "prepare.yml"),
            maintenance_recover=str(world.folder / "recover.yml"),
            **LIMITS,
        )
        hosts = world.folder / "rulebook-inventory.json"
        hosts.write_text(json.dumps(inventory))
        environment = {"ANSIBLE_SSH_CONTROL_PATH_DIR": str(self.sockets), "ANSIBLE_PIPELINING": "1"}
        self._rulebook = Rulebook(world.folder, hosts, environment=environment)

    def start(self) -> None:
        self._rulebook.start()

    def finish(self) -> None:
        """Wait until the rulebook's runs have recovered all hosts, and the last one has ended."""
        wait_until(
            lambda: not any(vm.is_drained for vm in self.world.vms.values()) and self._rulebook.runs(),
            "the recoveries",
            lambda: (self.world.explain(), self._rulebook.log()[-3000:]),
            timeout=LIMIT,
            pause=0.5,
        )

    def close(self) -> None:
        self._rulebook.stop()

    def _output(self) -> str:
        return self._rulebook.log()
