# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Three simulated VMs of one availability set as hosts of a rulebook."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from support.maintenance.fleet import LIFE, Fleet, variables
from support.simulator_process import Simulator
from support.wait import wait_until

NAMES = ("vm1", "vm2", "vm3")
# starts only when it is approved; later than the option maintenance_within of the inventory allows
EVENT: dict[str, Any] = {"type": "Freeze", "resources": list(NAMES), "notice": "6h", "started_for": LIFE}
# seconds; playbooks of several hosts run in this time, on a machine that may be busy
LIMIT = 600.0


class ThreeHosts(Fleet):
    """The VMs, whose prepare and recover tasks write markers; the inventory has the variables of the role.

    ``azure`` has a manual clock. ``names``: host -> VM; ``more``: VM -> further variables of its host.
    """

    def __init__(
        self,
        azure: Simulator,
        folder: Path,
        names: dict[str, str] | None = None,
        more: dict[str, dict[str, Any]] | None = None,
    ) -> None:
        super().__init__(azure, folder, ())
        self.names = names or {name: name for name in NAMES}
        steps = self.steps()
        given = json.loads((folder / "inventory.json").read_text())
        given["all"]["hosts"] = {
            host: {**variables(azure, folder, vm), **steps, **(more or {}).get(vm, {})}
            for host, vm in self.names.items()
        }
        self.inventory = folder / "hosts.json"
        self.inventory.write_text(json.dumps(given))
        self.source_variables = {"maintenance_source_endpoint": azure.endpoints["vm1"]}

    def wait_for_approval(self, number: int, explain: Callable[[], object]) -> None:
        wait_until(lambda: len(self.approvals()) >= number, f"approval {number}", explain, LIMIT)

    def wait_for_recovery(self, number: int, explain: Callable[[], object]) -> None:
        """Wait until each host has recovered so many times and has no note."""
        wait_until(
            lambda: (
                all(self.course_of("recover").count(host) >= number for host in self.names)
                and not any(self.note(vm) for vm in self.names.values())
            ),
            f"recovery {number}",
            explain,
            LIMIT,
        )
