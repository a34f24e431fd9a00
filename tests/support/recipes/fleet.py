# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Hosts of the lab as VMs of a simulator at 169.254.169.254, and the steps of their maintenance by time."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from support.hosts.host import Host
from support.recipes.project import TIMEOUT
from support.simulator_process import Simulator
from support.wait import wait_until

# programs of the user that the documents name; each writes its call to a file on its host
PROGRAMS = ("leave-load-balancer", "join-load-balancer", "update-site")
CALLS = "/var/log/calls"
# a program fails while FAILING/NAME exists
FAILING = "/var/tmp/failing"
PROGRAM = f"""#!/bin/sh
name="${{0##*/}}"
echo "$(date -u +%Y-%m-%dT%H:%M:%S.%3NZ) $name $*" >>{CALLS}
! test -e {FAILING}/"$name"
"""
# of a run of the role maintenance on its host
NOTE = "/var/lib/azure-scheduled-events/maintenance/note.json"
REMOVED_PATHS = (CALLS, FAILING, "/run/azure-scheduled-events", "/var/lib/azure-scheduled-events", "/etc/ansible")


class Fleet:
    """VMs by their names, and their simulator, which identifies the hosts by their addresses."""

    def __init__(self, hosts: Mapping[str, Host], azure: Simulator) -> None:
        self.hosts, self.azure = dict(hosts), azure
        for host in self.hosts.values():
            host.run(["rm", "-rf", *REMOVED_PATHS])
            for name in PROGRAMS:
                path = host.file(f"/usr/local/bin/{name}")
                path.write_text(PROGRAM, encoding="utf-8")
                path.chmod(0o755)

    def announce(self, kind: str, *names: str, **more: Any) -> str:
        """Announce an event of these VMs, which starts after its approval and is over soon; return its id."""
        event = {"type": kind, "resources": list(names), "notice": "25m", "started_for": "1s", **more}
        answer: dict[str, Any] = self.azure.post("/events", event)
        return str(answer["id"])

    def start_event(self, event_id: str) -> None:
        """Start an event without an approval."""
        self.azure.post(f"/events/{event_id}/change", {"notice": "0s"})

    def make_fail(self, name: str, program: str) -> None:
        """Make a program on a VM fail from now on."""
        self.hosts[name].run(["mkdir", "-p", FAILING])
        self.hosts[name].run(["touch", f"{FAILING}/{program}"])

    def steps(self) -> list[str]:
        """Return the steps so far, by time.

        A step is `web1 leave-load-balancer` and its arguments, `web1 approved`, `Freeze web1 started`
        or `Freeze web1 finished`.
        """
        found = [(time, f"{name} {call}") for name in self.hosts for time, call in self._calls(name)]
        for line in self.azure.get("/log")["lines"]:
            if line["what"] == "approval" and line["status"] == 200:
                found.append((line["time"], f"{line['vm']} approved"))
            elif line["what"] in ("started", "finished"):
                found.append((line["time"], f"{line['type']} {' '.join(line['resources'])} {line['what']}"))
        return [text for _time, text in sorted(found)]

    def end_when_seen(self, event_id: str) -> None:
        """Wait until the note on each VM says that the only event has started, and end it.

        The wait of the role writes this. Its reads alone say too little: on a busy machine the role ends the wait, and
        loses the result of the reads, before it waits again.
        """

        def is_seen(host: Host) -> bool:
            note = host.file(NOTE)
            return note.exists() and any(each.get("started") for each in json.loads(note.read_bytes())["events"])

        wait_until(lambda: all(map(is_seen, self.hosts.values())), "every VM sees the start", self.steps, TIMEOUT)
        self.azure.post(f"/events/{event_id}/complete")

    def wait_until(self, text: str) -> None:
        """Wait for a step."""
        wait_until(lambda: text in self.steps(), text, self.steps, TIMEOUT)

    def _calls(self, name: str) -> list[tuple[str, str]]:
        file = self.hosts[name].file(CALLS)
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        return [(time, call.rstrip()) for time, call in (line.split(" ", 1) for line in lines)]


def maintenance_of(kind: str, *names: str) -> list[str]:
    """Return the steps of an event: its VMs leave the load balancer, the first one approves, all join again."""
    event = f"{kind} {' '.join(names)}"
    left, joined = ([f"{name} {verb}-load-balancer" for name in names] for verb in ("leave", "join"))
    return [*left, f"{names[0]} approved", f"{event} started", f"{event} finished", *joined]
