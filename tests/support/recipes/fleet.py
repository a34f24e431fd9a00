# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Hosts of the lab as VMs of an Azure at 169.254.169.254, and what happened to them in which order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from support.hosts.host import Host
from support.recipes.project import LONGEST
from support.simulator_process import Simulator
from support.wait import wait_until

# programs of the user that documents name; each notes its call on its host
PROGRAMS = ("leave-load-balancer", "join-load-balancer", "update-site")
CALLS = "/var/log/calls"
# fails, as a drain that cannot succeed does, while FAILING/NAME exists
FAILING = "/var/tmp/failing"
PROGRAM = f"""#!/bin/sh
name="${{0##*/}}"
echo "$(date -u +%Y-%m-%dT%H:%M:%S.%3NZ) $name $*" >>{CALLS}
! test -e {FAILING}/"$name"
"""
FORGOTTEN = (CALLS, FAILING, "/run/azure-scheduled-events", "/var/lib/azure-scheduled-events", "/etc/ansible")


class Fleet:
    """VMs, and the Azure that they ask.

    Args:
        hosts: name of the VM -> its host.
        azure: the simulator, which knows the hosts by their addresses.
    """

    def __init__(self, hosts: Mapping[str, Host], azure: Simulator) -> None:
        self.hosts, self.azure = dict(hosts), azure
        for host in self.hosts.values():
            host.run(["rm", "-rf", *FORGOTTEN])
            for name in PROGRAMS:
                path = host.file(f"/usr/local/bin/{name}")
                path.write_text(PROGRAM, encoding="utf-8")
                path.chmod(0o755)

    def announce(self, kind: str, *names: str, **more: Any) -> str:
        """An event of these VMs that does not start before it is approved, and is over soon after; its id."""
        event = {"type": kind, "resources": list(names), "notice": "25m", "started_for": "1s", **more}
        answer: dict[str, Any] = self.azure.post("/events", event)
        return str(answer["id"])

    def let_start(self, event_id: str) -> None:
        """Azure does not wait for an approval of this event any longer."""
        self.azure.post(f"/events/{event_id}/change", {"notice": "0s"})

    def let_fail(self, name: str, program: str) -> None:
        """From now on this program of the VM fails."""
        self.hosts[name].run(["mkdir", "-p", FAILING])
        self.hosts[name].run(["touch", f"{FAILING}/{program}"])

    def happened(self) -> list[str]:
        """What happened so far, by time: `web1 leave-load-balancer` and its arguments, `web1 approved`, `Freeze web1 started`, `Freeze web1 finished`."""
        found = [(time, f"{name} {call}") for name in self.hosts for time, call in self._calls(name)]
        for line in self.azure.get("/log")["lines"]:
            if line["what"] == "approval" and line["status"] == 200:
                found.append((line["time"], f"{line['vm']} approved"))
            elif line["what"] in ("started", "finished"):
                found.append((line["time"], f"{line['type']} {' '.join(line['resources'])} {line['what']}"))
        return [text for _time, text in sorted(found)]

    def let_end_when_seen(self, event_id: str) -> None:
        """Azure starts this approved event, and ends it when each VM has read that it has started."""

        def started() -> Any:
            return next(
                (line["time"] for line in self.azure.get("/log?what=started")["lines"] if line["id"] == event_id), None
            )

        def is_seen(name: str) -> bool:
            requests = self.azure.get(f"/requests?vm={name}")["requests"]
            return (
                len([request for request in requests if request["method"] == "GET" and request["time"] > started()]) > 1
            )

        wait_until(started, "the start", self.happened, LONGEST)
        wait_until(lambda: all(map(is_seen, self.hosts)), "every VM reads its events again", self.happened, LONGEST)
        self.azure.post(f"/events/{event_id}/complete")

    def wait_until(self, text: str) -> None:
        """Return as soon as this is among what happened."""
        wait_until(lambda: text in self.happened(), text, self.happened, LONGEST)

    def _calls(self, name: str) -> list[tuple[str, str]]:
        file = self.hosts[name].file(CALLS)
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        return [(time, call.rstrip()) for time, call in (line.split(" ", 1) for line in lines)]
