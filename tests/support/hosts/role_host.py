# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A host with the role hook_runner, hooks that write markers, and a simulated Azure."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from support.ansible_hosts import Hosts
from support.hosts.ansible_inventory import Applied, ansible_on, apply_role
from support.hosts.apply_impact import Impacts
from support.hosts.host import Host
from support.hosts.lab import start_simulator
from support.simulator_process import Simulator
from support.wait import wait_until

SERVICE = "azure-scheduled-events.service"
COMMAND = "azure-scheduled-events"
CONFIGURATION = "/etc/azure-scheduled-events/config.yml"
MARKER_FILE = "/var/lib/marks"
HOLD_FILE = "/var/lib/hold"
STAGES = ("prepare", "emergency", "started", "recover")
# seconds from an approval to the start, and from the start to the end of the event
START, LIFE = 2, 700
# Writes a marker at its begin and its end, and does not end while the file HOLD_FILE-STAGE exists.
HOOK = f"""#!/bin/sh
boot=$(cat /proc/sys/kernel/random/boot_id)
mark() {{ echo "$1 $EVENT_STAGE $EVENT_TYPE ${{EVENT_OUTCOME:--}} $EVENT_ID $boot" >>{MARKER_FILE}; }}
mark began
while test -e {HOLD_FILE}-$EVENT_STAGE; do sleep 0.1; done
mark ended
"""
HOOKS = [{"stage": stage, "name": "10-mark", "content": HOOK} for stage in STAGES]
APPROVE_WHEN_PREPARED = {
    "name": "all of mine",
    "rules": [{"name": "prepared first", "when": {"concerns_me": True}, "approve": "after_prepare"}],
}


class Marker(NamedTuple):
    """One line of a hook."""

    what: str
    stage: str
    type: str
    outcome: str
    event_id: str
    boot_id: str


class RoleHost:
    """One host, the role on it, and queries of an administrator.

    ``folder`` is for the files of Ansible; ``hooks`` are those that the role installs.

    Attributes:
        first_run: the result of the first application of the role, for the test of that.
    """

    def __init__(self, host: Host, folder: Path, hooks: Sequence[Mapping[str, str]] = HOOKS) -> None:
        self.host, self._hooks = host, list(hooks)
        self.first_run: Applied | None = None
        self._folder = folder / f"of-{host.name}"
        self._folder.mkdir()
        self._ansible: Hosts = ansible_on({host.name: host}, self._folder)

    def apply(self, *words: str, **variables: Any) -> Applied:
        """Apply the role; ``words`` are for ansible-playbook, ``variables`` those of the role without their prefix."""
        given = {
            "install_packages": False,
            "policy": APPROVE_WHEN_PREPARED,
            "hooks": self._hooks,
            **variables,
            "config": {"interval": 0.2, "timeout": 5, **variables.get("config", {})},
        }
        return apply_role(self._ansible, self._folder, "hook_runner", given, *words)

    def must_apply(self, *words: str, **variables: Any) -> Applied:
        applied = self.apply(*words, **variables)
        assert applied.status == 0, applied.text
        return applied

    def configure(self, reload: bool = True, **keys: Any) -> None:
        """Change the configuration by hand, and reload the daemon."""
        config = {"interval": 0.2, "timeout": 5, "policy": APPROVE_WHEN_PREPARED, **keys}
        self.host.file(CONFIGURATION).write_text(json.dumps(config), encoding="utf-8")
        if reload:
            self.host.run(["systemctl", "reload", SERVICE])

    def write_drop_in(self, *lines: str) -> None:
        """Write lines to a drop-in of the unit in addition to those of the role, or none, and restart the daemon."""
        drop_in = self.host.file(f"/etc/systemd/system/{SERVICE}.d/test.conf")
        drop_in.parent.mkdir(exist_ok=True)
        drop_in.write_text("\n".join(["[Service]", *lines, ""]), encoding="utf-8")
        self.host.run(["systemctl", "daemon-reload"])
        self.host.run(["systemctl", "restart", SERVICE])
        wait_until(self.watches, "the daemon polls", self.log)

    def ask(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run the command of the package on the host."""
        return self.host.run([COMMAND, *words], check=False)

    def status(self) -> dict[str, Any]:
        """Return the status of the daemon; empty while it does not answer, which a restart may cause."""
        answer = self.ask("status", "--json")
        return dict(json.loads(answer.stdout)) if answer.returncode in (0, 1) and answer.stdout else {}

    def unit(self, name: str) -> str:
        """Return a property of the unit."""
        return self.host.run(["systemctl", "show", "--value", "--property", name, SERVICE]).stdout.strip()

    def process(self) -> str:
        return self.unit("MainPID")

    def log(self) -> str:
        """Return the last log lines of the daemon, for the messages of failed tests."""
        if not self.host.is_up:
            return "the host is down"
        return self.host.run(
            ["journalctl", "--no-pager", "--lines=60", "--output=cat", f"--unit={SERVICE}"], check=False
        ).stdout

    def markers(self, what: str = "", stage: str = "") -> list[Marker]:
        file = self.host.file(MARKER_FILE)
        found = (
            [Marker(*line.split()) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []
        )
        return [mark for mark in found if what in ("", mark.what) and stage in ("", mark.stage)]

    def began(self, stage: str) -> int:
        return len(self.markers("began", stage))

    def ended(self, stage: str) -> int:
        return len(self.markers("ended", stage))

    def wait_for(self, what: str, stage: str, times: int = 1) -> None:
        wait_until(
            lambda: len(self.markers(what, stage)) >= times,
            f"{stage} {what} {times} times",
            lambda: f"{self.markers()}\n{self.log()}",
        )

    def hold(self, stage: str) -> None:
        """Keep hooks of this stage from ending, until `release`."""
        self.host.file(f"{HOLD_FILE}-{stage}").touch()

    def release(self, stage: str) -> None:
        self.host.file(f"{HOLD_FILE}-{stage}").unlink(missing_ok=True)

    def reset(self) -> None:
        """Remove the markers, and release all hooks."""
        for stage in STAGES:
            self.release(stage)
        self.host.file(MARKER_FILE).unlink(missing_ok=True)

    def watches(self) -> bool:
        """Return True if the last poll of the daemon succeeded."""
        return bool(self.status().get("imds", {}).get("ok"))

    def is_idle(self) -> bool:
        """Return True if the daemon knows of no event, and the host has recovered."""
        status = self.status()
        return status.get("events") == [] and status["maintenance"] is None

    def history(self) -> Any:
        return json.loads(self.host.run([COMMAND, "history", "--json"]).stdout)


class Azure:
    """The simulator at 169.254.169.254, with a manual clock and real interruptions."""

    def __init__(self, simulator: Simulator, impacts: Impacts) -> None:
        self.simulator, self.impacts = simulator, impacts

    def announce(self, kind: str, *vms: str, **options: Any) -> str:
        """Announce an event, and return its ID."""
        event = {"type": kind, "resources": list(vms), **options}
        return str(self.simulator.post("/events", event)["id"])

    def announce_and_hold(self, site: RoleHost, kind: str = "Freeze") -> str:
        """Announce an event of the host, whose preparation has begun then and does not end; return the ID."""
        site.hold("prepare")
        options = {"duration": 0} if kind == "Freeze" else {}
        event_id = self.announce(kind, site.host.name, **options)
        site.wait_for("began", "prepare")
        return event_id

    def advance(self, seconds: float) -> None:
        self.simulator.advance(seconds)

    def inject_fault(self, kind: str) -> None:
        """Inject a fault into IMDS, and wait until it has affected a request."""
        number = self.simulator.post("/faults", {"kind": kind})["number"]
        wait_until(
            lambda: any(
                fault["number"] == number and fault["seen"] for fault in self.simulator.get("/faults")["faults"]
            ),
            f"a request with the fault {kind}",
        )

    def approvals(self, event_id: str) -> int:
        """Return the number of approval requests for this event."""
        return sum(line["what"] == "approval" and event_id in line["ids"] for line in self.log())

    def log(self) -> list[dict[str, Any]]:
        return list(self.simulator.get("/log")["lines"])

    def wait_for_approval(self, event_id: str, site: RoleHost) -> None:
        wait_until(lambda: self.approvals(event_id), "the approval", site.log)

    def interrupt(self, event_id: str, site: RoleHost, act: str) -> None:
        """Let an event start when it is approved, until the act and the hooks of the start have ended."""
        self.wait_for_approval(event_id, site)
        self.advance(START)
        self.wait_for_impact(site.host.name, act)
        site.wait_for("ended", "started")

    def wait_for_impact(self, name: str, act: str) -> None:
        wait_until(
            lambda: (name, act) in self.impacts.happened,
            f"{name}: {act}",
            lambda: [line for line in self.log() if line["what"] == "impact-command"],
        )


@contextmanager
def azure_of(hosts: Mapping[str, Host], folder: Path) -> Iterator[Azure]:
    """Simulate an availability set of these hosts."""
    with Impacts(hosts, folder) as impacts, start_simulator(impacts, "--clock", "manual") as simulator:
        yield Azure(simulator, impacts)


@contextmanager
def idle_host(site: RoleHost, azure: Azure) -> Iterator[RoleHost]:
    """Wait until the host is up, the daemon polls and there are no events; remove the markers."""
    if not site.host.is_up:
        site.host.boot()
    azure.simulator.delete("/faults")
    for event in azure.simulator.get("/events")["events"]:
        if event["gone_at"] is None:
            azure.simulator.post(f"/events/{event['id']}/complete")
    wait_until(lambda: site.watches() and site.is_idle(), "it watches, and is idle", site.log)
    site.reset()
    azure.impacts.happened.clear()
    try:
        yield site
    finally:
        for stage in STAGES:
            site.release(stage)
