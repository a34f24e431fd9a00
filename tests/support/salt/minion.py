# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A real salt-minion of a master on loopback."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from support.salt.master import Master
from support.salt.salt_installation import SaltInstallation
from support.salt.salt_process import SaltProcess


class Minion(SaltProcess):
    def __init__(self, name: str, folder: Path, installation: SaltInstallation, master: Master, **config: Any) -> None:
        self.name = name
        self.master = master
        settings = {
            "id": name,
            "master": master.config["interface"],
            "master_port": master.config["ret_port"],
            "publish_port": master.config["publish_port"],
            "acceptance_wait_time": 1,
            "random_reauth_delay": 1,
            "grains_cache": False,
            "enable_fqdns_grains": False,
            **config,
        }
        super().__init__("minion", folder, installation, settings)

    def ask(self, function: str, *words: Any, **named: Any) -> Any:
        return self.master.ask(self.name, function, *words, **named)

    def start_job(self, function: str, *words: Any) -> None:
        """Publish a job, and do not wait for its return."""
        self.master.start_job(self.name, function, *words)

    def events(self, change: str = "*", **fields: Any) -> list[dict[str, Any]]:
        """Return the data of the beacon's events on the master's bus."""
        return [event.data for event in self.master.bus.events(self.tag(change), **fields)]

    def wait_for_event(self, change: str, **fields: Any) -> dict[str, Any]:
        """Wait for the first such event of the beacon, and return its data."""
        return self.master.bus.wait(self.tag(change), **fields).data

    def tag(self, change: str) -> str:
        return f"salt/beacon/{self.name}/azure_events/{change}"

    def threads(self) -> int:
        """Return the number of threads of the minion's main process, in which its beacons run."""
        pid = Path(self.config["pidfile"]).read_text().strip()
        return len(list(Path(f"/proc/{pid}/task").iterdir()))
