# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A Salt master with the engine on this machine, and a minion inside each host as a service.

The hosts have no packages of Salt. They run the Salt of this machine's environment, which is mounted
into them, by their own Python.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from chaos.plan import PREPARE, RECOVER
from chaos.vm import STEP_COMMAND
from promises.coordinators import Coordinator
from promises.world import NAMES, Hosts, World
from support.hosts.bridge import GATEWAY
from support.salt.cluster import TREE
from support.salt.master import Master
from support.salt.salt_installation import SaltInstallation
from support.salt.tree_minion import MASTER_DIRS
from support.wait import wait_until

RUN = "salt"
MOUNTED = "/opt/salt"
SERVICE = "salt-minion.service"
UNIT = f"""[Unit]
After=network.target

[Service]
Environment=PYTHONPATH={MOUNTED}/lib/python3.11/site-packages PYTHONWARNINGS=ignore PYTHONDONTWRITEBYTECODE=1
ExecStart=/usr/bin/python3 {MOUNTED}/bin/salt-minion -c /etc/salt
KillMode=control-group
# a minion whose IMDS does not answer takes up to a minute to end
TimeoutStopSec=5
Restart=on-failure

[Install]
WantedBy=multi-user.target
"""
# seconds; four minions answer after some seconds, on a busy machine later
LIMIT = 240.0


@contextlib.contextmanager
def salt_site(hosts: Hosts, home: Path, folder: Path) -> Iterator[Master]:
    """Run the master, and prepare the hosts for their minions, which are not started."""
    installation = SaltInstallation.at(home)
    master = Master(
        folder / "master",
        installation,
        [TREE],
        interface=GATEWAY,
        engines=[{"azure_events": {}}],
        azure_events={},
        **MASTER_DIRS,
    )
    master.set_pillar(**dict.fromkeys(NAMES, _pillar()))
    mounted = []
    try:
        for name, vm in hosts.vms.items():
            vm.host.power_off()
            target = vm.host.file(MOUNTED)
            target.mkdir(parents=True, exist_ok=True)
            subprocess.run(["mount", "--bind", str(home.resolve()), str(target)], check=True, timeout=30)
            mounted.append(target)
            _write(vm.host.file("/etc/salt/minion"), json.dumps(_minion(name, master)))
            _write(vm.host.file(f"/etc/systemd/system/{SERVICE}"), UNIT)
            vm.heal()
        master.start()
        with running_minions(hosts):
            master.wait_for(*NAMES)
            synced = master.ask_all("*", "saltutil.sync_all", timeout=120)
            assert set(synced) == set(NAMES), synced
        yield master
    finally:
        master.kill()
        for vm in hosts.vms.values():
            vm.heal()
            vm.host.power_off()
        for target in mounted:
            subprocess.run(["umount", "--lazy", str(target)], check=True, timeout=30)
        for vm in hosts.vms.values():
            vm.heal()


@contextlib.contextmanager
def running_minions(hosts: Hosts) -> Iterator[None]:
    for vm in hosts.vms.values():
        vm.host.run(["systemctl", "daemon-reload"])
        vm.host.run(["systemctl", "enable", "--now", SERVICE])
    try:
        yield
    finally:
        for vm in hosts.vms.values():
            vm.heal()
            vm.host.run(["systemctl", "disable", "--now", SERVICE], check=False)


def _pillar() -> dict[str, Any]:
    steps = {
        stage: [f"{STEP_COMMAND} {step} {RUN}" for step in names]
        for stage, names in (("prepare", PREPARE), ("recover", RECOVER))
    }
    return {"azure_events": steps}


def _minion(name: str, master: Master) -> dict[str, Any]:
    return {
        "id": name,
        "master": GATEWAY,
        "master_port": master.config["ret_port"],
        "publish_port": master.config["publish_port"],
        "acceptance_wait_time": 1,
        "random_reauth_delay": 1,
        "loop_interval": 1,
        "grains_cache": False,
        "enable_fqdns_grains": False,
        "beacons": {"azure_events": [{"interval": 1}]},
    }


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _shows_why_not(rows: list[dict[str, Any]]) -> bool:
    """Return True if a preparation failed, or if all have prepared and the approval is withheld."""
    if any(row["why_not"] for row in rows):
        return True
    return bool(rows) and all(row["prepared"] == "prepared" and row["withheld"] for row in rows)


class SaltEngine(Coordinator):
    def __init__(self, world: World, master: Master) -> None:
        super().__init__(world)
        self._master = master
        master.wait_for(*NAMES)

    def wait_for_decision(self) -> None:
        """Wait until the engine has approved, or shows why it does not."""
        wait_until(
            lambda: self.world.approvals() or _shows_why_not(self._rows()),
            "a decision of the engine",
            lambda: (self._rows(), self.world.explain()),
            timeout=LIMIT,
            pause=0.5,
        )

    def make_unreachable(self, name: str) -> None:
        self.world.vms[name].host.run(["systemctl", "stop", SERVICE])

    def _rows(self) -> list[dict[str, Any]]:
        known = {event["id"].casefold() for event in self.world.simulator.get("/events")["events"]}
        rows = self._master.run_runner("azure_events.status")["rows"]
        return [row for row in rows if row["event_id"].casefold() in known]
