# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A model of Azure: groups of VMs, their events, and documents by two backends that differ for a moment.

The behaviour is that of docs/reference/scheduled-events.md. This model shares no code with the
simulator: a fleet needs documents without sockets.
"""

from __future__ import annotations

import collections
import random
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from azure_scheduled_events.document import EventDocument, ScheduledEvent
from maintenance_world.azure import EPOCH, SCHEDULED

NOTICE = {"Freeze": 900.0, "Reboot": 900.0, "Redeploy": 600.0, "Preempt": 30.0, "Terminate": 420.0}


def date_at(moment: float) -> datetime:
    """Return the aware UTC time of a moment in virtual seconds."""
    return EPOCH + timedelta(seconds=moment)


@dataclass(eq=False)
class Event:
    """One event.

    Attributes:
        approvals: (moment, client) of each approval that Azure accepted.
        is_listed: whether the newest document of its group has it.
        is_over: whether it ended or was cancelled.
        changed_at: when its type or its VMs were changed last.
    """

    event_id: str
    kind: str
    group: Group
    vms: tuple[str, ...]
    announced_at: float
    not_before: float
    lasts: float
    status: str = SCHEDULED
    approvals: list[tuple[float, str]] = field(default_factory=list)
    is_listed: bool = True
    is_over: bool = False
    changed_at: float = float("-inf")

    @property
    def key(self) -> str:
        """The identity of the event, as `EventRecord.key`."""
        return self.event_id.casefold()

    def entry(self) -> ScheduledEvent:
        time = date_at(self.not_before).replace(microsecond=0) if self.status == SCHEDULED else None
        return ScheduledEvent(
            self.event_id, self.kind, self.status, self.vms, "VirtualMachine", time, "", "Platform", None
        )


class Group:
    """VMs that share a document: an availability set, a placement group, or a single VM.

    The first backend has each change at once, the second one some seconds later.
    """

    def __init__(self, name: str, vms: tuple[str, ...]) -> None:
        self.name = name
        self.vms = vms
        self.events: list[Event] = []
        # moment after which both backends have the same document
        self.settled_at = 0.0
        self._incarnation = 0
        # (moment at which the second backend has it, document)
        self._versions: collections.deque[tuple[float, EventDocument]] = collections.deque()
        self.publish(0.0, 0.0)

    def publish(self, now: float, lag: float) -> None:
        """Let both backends have the present events, the second one `lag` seconds from now."""
        self._incarnation += 1
        entries = tuple(event.entry() for event in self.events if event.is_listed)
        self.settled_at = max(self.settled_at, now + lag)
        self._versions.append((self.settled_at, EventDocument(self._incarnation, entries)))

    def document(self, now: float, from_second: bool) -> EventDocument:
        versions = self._versions
        while len(versions) > 1 and versions[1][0] <= now:
            versions.popleft()
        found = versions[0][1] if from_second else versions[-1][1]
        return found._replace(server_time=date_at(now).replace(microsecond=0))


def make_groups(vms: int, sizes: tuple[int, ...], chance: random.Random) -> list[Group]:
    """Return groups of these sizes, drawn at random, with so many VMs in all."""
    groups: list[Group] = []
    made = 0
    while made < vms:
        size = min(chance.choice(sizes), vms - made)
        name = f"g{len(groups):03d}"
        groups.append(Group(name, tuple(f"vm{made + number:04d}" for number in range(size))))
        made += size
    return groups
