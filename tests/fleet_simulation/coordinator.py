# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A coordinator for hook runners with `leader: external`: it reads `status --json` of all VMs of an event, and
approves when all of them report that they have prepared."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from fleet_simulation.agenda import Agenda
from fleet_simulation.azure_model import SCHEDULED, Event, Group
from fleet_simulation.host import Host

COORDINATOR = "the coordinator"
INTERVAL = 5.0


class Coordinator:
    """Coordinates one group.

    Args:
        group: the VMs.
        hosts: all hosts by name.
        agenda: virtual time.
        chance: random numbers.
        loss: share of the answers and requests that are lost.
        approve: takes (event, client).
    """

    def __init__(
        self,
        group: Group,
        hosts: Mapping[str, Host],
        agenda: Agenda,
        chance: random.Random,
        loss: float,
        approve: Callable[[Event, str], None],
    ) -> None:
        self._group, self._hosts, self._agenda, self._chance, self._loss = group, hosts, agenda, chance, loss
        self._approve = approve

    def begin(self) -> None:
        """Look at the group now and again."""
        for event in self._group.events:
            if event.status == SCHEDULED and event.is_listed and len(event.vms) > 1:
                self._coordinate(event)
        self._agenda.after(INTERVAL * self._chance.uniform(0.5, 1.5), self.begin)

    def _coordinate(self, event: Event) -> None:
        if all(self._prepared(name, event) == "ok" for name in event.vms) and self._chance.random() >= self._loss:
            self._agenda.after(self._chance.uniform(0.05, 1.0), partial(self._approve, event, COORDINATOR))

    def _prepared(self, name: str, event: Event) -> str | None:
        """Return what a daemon reports about its preparation; None without an answer or without the event."""
        daemon = self._hosts[name].daemon
        if daemon is None or self._chance.random() < self._loss:
            return None
        listed: list[dict[str, Any]] = daemon.status()["events"]
        return next((entry["prepared"] for entry in listed if entry["event_id"] == event.event_id), None)
