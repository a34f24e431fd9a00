# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Interruptions as other machines see them: a host that is off or frozen answers no packet.

The network namespace of a host of the lab outlives the host. Its kernel would answer for a host
that is off ("connection refused", at once), and accept connections for a frozen one. Therefore the
cable of the host is disconnected for that time.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

from support.hosts.apply_impact import DONE, Impacts
from support.hosts.bridge import ip
from support.hosts.host import Host

FIRST_ADDRESS = 10


def cable_of(host: Host) -> str:
    """Return the name of the end on the bridge, see support/hosts/bridge.py."""
    return f"host{int(host.address.rpartition('.')[2]) - FIRST_ADDRESS}"


class Outages(Impacts):
    """Applies interruptions; ``away`` is the seconds between the power-off of a host and its boot.

    Attributes:
        over: (VM, type of the event) of the interruptions that have ended, in their order.
        failed: the errors of interruptions.
    """

    def __init__(self, hosts: Mapping[str, Host], folder: Path, away: float) -> None:
        super().__init__(hosts, folder)
        self._machines, self._away = dict(hosts), away
        self.failed: list[str] = []

    def answer(self, act: str, name: str) -> str:
        host = self._machines[name]
        try:
            if act == "freeze":
                ip("link", "set", cable_of(host), "down")
                host.freeze()
            elif act == "thaw":
                host.thaw()
                ip("link", "set", cable_of(host), "up")
            else:
                self._restart(host, is_redeploy=act == "redeploy")
        except Exception as error:  # pylint: disable=broad-exception-caught  # goes to the report
            self.failed.append(f"{name}: {act}: {type(error).__name__}: {error}")
            return self.failed[-1]
        self.happened.append((name, act))
        return DONE

    def _restart(self, host: Host, is_redeploy: bool) -> None:
        host.power_off()
        ip("link", "set", cable_of(host), "down")
        time.sleep(self._away)
        if is_redeploy:
            host.empty_ephemeral()
        ip("link", "set", cable_of(host), "up")
        host.boot()
