# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plans a maintenance run: for which events the hosts prepare now, and which events wait for a later run.

An approval releases all VMs of an event. The hosts of one event therefore prepare together, and an event is the unit
of all limits.
"""

from __future__ import annotations

import typing as t
from datetime import datetime, timezone

from ...module_utils.azure_scheduled_events.document import EVENT_STATUSES
from ...module_utils.azure_scheduled_events.identity import vm_key
from ...module_utils.azure_scheduled_events.printable import printable
from ...module_utils.azure_scheduled_events.release import UNKNOWN_STATUS, Obstacle, Report, all_vms, obstacles
from ...module_utils.azure_scheduled_events.timestamps import parse_time
from ...module_utils.azure_scheduled_events.urgency import Urgency, counts_for, most_urgent_first
from .hosts import Event, MaintenanceHost
from .limits import Limits
from .vm_hosts import hosts_by_vm, reports_by_vm, sighting_of

# the action of the run for an event
PREPARE = "prepare"
WAIT = "wait"
NO_PREPARATION = "no_preparation"

# why
STARTED = "started"
DEADLINE = "deadline"
AT_MOST = "at_most"
FAULT_DOMAIN = "fault_domain"
NOT_BEFORE = "not_before"
ALONE = "alone"

_MEMBERS = (
    *("event_id", "event_type", "status", "resources", "hosts", "not_before"),
    *("action", "because", "waits_for", "wave", "approve", "why_not"),
)

# IMDS may give an event the last second of the calendar, which differences of clocks move beyond it
_LATEST = datetime(9999, 12, 31, tzinfo=timezone.utc).timestamp()

_Planned = t.Dict[str, t.Any]


class MaintenancePlan:
    """The plan of one run, for all hosts of the play; ``now``: seconds by the controller's clock."""

    def __init__(self, hosts: t.Sequence[MaintenanceHost], limits: Limits, now: float) -> None:
        self._hosts = hosts
        self._limits = limits
        self._now = now
        self._domains = {host.name: host.fault_domain or host.name for host in hosts}
        self._server_now = _server_time(hosts, now)
        self._owners = hosts_by_vm({host.name: host.approval_vm for host in hosts})
        self._events = self._due_events()
        self.out = sorted(
            host.name for host in hosts if host.name in limits.group and (host.is_unknown or host.had_note)
        )
        self._decide()

    @property
    def events(self) -> list[_Planned]:
        """The due events in the order in which the run takes them, as the README of the role describes them."""
        return [{name: event[name] for name in _MEMBERS} for event in self._events]

    @property
    def yields_at(self) -> str | None:
        """When the first waiting event no longer waits, by the controller's clock in ISO 8601; None without one."""
        waiting = [event["begin_by"] for event in self._events if event["action"] == WAIT]
        return _as_text(min(waiting) - self._limits.yield_within) if waiting else None

    def hosts(self) -> dict[str, dict[str, t.Any]]:
        """Return for each host the keys of its events, whether it prepares, and when that ends at the latest."""
        return {host.name: self._of_host(host) for host in self._hosts}

    def _of_host(self, host: MaintenanceHost) -> dict[str, t.Any]:
        own = self._own_events(host)
        prepares = _to_prepare(own)
        ends = [event["begin_by"] for event in prepares] if self._limits.deadline else []
        return {
            "events": [event["key"] for event in own],
            "prepares_for": [event["key"] for event in prepares],
            "types": self._types[host.name],
            "ends_at": _as_text(min(ends)) if ends else None,
            "starts_at": {event["key"]: _as_text(event["starts_at"]) for event in own},
        }

    def _own_events(self, host: MaintenanceHost) -> list[_Planned]:
        """Return the events that the host gets in this run."""
        return [
            event
            for event in self._events
            if host.name in event["hosts"] and (event["action"] != WAIT or event["key"] in host.keys_of_note)
        ]

    def _types_of(self, host: MaintenanceHost) -> list[str]:
        """Return the types of the events for which the host prepares, as it lists them: its tasks get these."""
        planned = ((event, host.type_of(event["key"])) for event in _to_prepare(self._own_events(host)))
        own = [dict(event, event_type=kind) for event, kind in planned if kind is not None]
        # ready hooks prepare for the most urgent event, and tasks get all
        return sorted({event["event_type"] for event in (_most_urgent_first(own)[:1] if host.has_ready_hooks else own)})

    def _due_events(self) -> list[_Planned]:
        """Return the due events, first those that no limit holds, and all of these in the order of their urgency."""
        hosts = hosts_by_vm({host.name: host.vm for host in self._hosts})
        found: dict[str, _Planned] = {}
        for host in self._hosts:
            for event in host.events_due:
                known = found.setdefault(event["key"], dict(event, hosts=[], begun=False))
                if event["status"] == "Started":
                    known.update(status="Started")
                known["begun"] = known["begun"] or event["key"] in host.keys_of_note
        for key, event in found.items():
            event["resources"] = list(all_vms(host.resources_of(key) for host in self._hosts).values())
            event["hosts"] = [name for vm in event["resources"] for name in hosts.get(vm_key(vm), ())]
            event["left"] = self._seconds_left(event)
            event["starts_at"] = self._now + event["left"]
            event["begin_by"] = event["starts_at"] - self._limits.deadline
        return sorted(
            _most_urgent_first(found.values()),
            key=lambda event: (event["status"] != "Started", not event["begun"], self._may_wait(event)),
        )

    def _seconds_left(self, event: Event) -> float:
        moment = parse_time(event["not_before"]) if event["not_before"] else None
        if moment is None or event["status"] == "Started":
            return 0.0
        return max(0.0, moment.timestamp() - self._server_now)

    def _decide(self) -> None:
        """Set for each event what the run does about it, why, and its wave."""
        waiting = self._select(set(self.out), 1)
        wave = 1
        # as if all hosts of a wave were in service again before the next one; each wave takes at least one event
        while waiting:
            wave += 1
            waiting = self._simulate(waiting, wave)
        self._types = {host.name: self._types_of(host) for host in self._hosts}
        for event in self._events:
            event.update(self._approval(event))

    def _select(self, out: set[str], wave: int) -> list[_Planned]:
        """Choose the events of this run, and return the others."""
        waiting = []
        for event in self._events:
            event.update(action=PREPARE, because="", waits_for=[], wave=wave)
            obstacle, others = self._obstacle(event, out)
            if event["status"] == "Started":
                event.update(action=NO_PREPARATION, because=STARTED)
            elif event["status"] not in EVENT_STATUSES:
                event.update(action=NO_PREPARATION, because=UNKNOWN_STATUS)
            elif self._limits.deadline and event["begin_by"] <= self._now:
                event.update(action=NO_PREPARATION, because=DEADLINE)
            elif obstacle and not self._may_wait(event):
                event.update(because=NOT_BEFORE)
            elif obstacle:
                event.update(action=WAIT, because=obstacle, waits_for=others)
                waiting.append(event)
            elif self._is_larger_than_the_limits(event):
                event.update(because=ALONE)
            if event["action"] != WAIT:
                out |= self._counted(event)
        return waiting

    def _simulate(self, waiting: list[_Planned], wave: int) -> list[_Planned]:
        """Set the wave of the events that fit together, and return the others."""
        out: set[str] = set()
        later = []
        for event in waiting:
            if self._obstacle(event, out)[0]:
                later.append(event)
                continue
            event["wave"] = wave
            out |= self._counted(event)
        return later

    def _may_wait(self, event: _Planned) -> bool:
        """Return True if the limits do not yield to NotBefore yet."""
        return bool(event["begin_by"] - self._limits.yield_within > self._now)

    def _obstacle(self, event: _Planned, out: set[str]) -> tuple[str, list[str]]:
        """Return the limit that the event would exceed, or "", and the hosts that are out of service before it."""
        counted = self._counted(event)
        others = sorted(out - counted)
        # an event that is larger than a limit is taken alone: its hosts cannot be taken one after the other
        if not others or not counted:
            return "", []
        together = out | counted
        if self._limits.at_most is not None and len(together) > self._limits.at_most:
            return AT_MOST, others
        domains = {self._domains[name] for name in together}
        if self._limits.one_fault_domain and len(domains) > 1:
            return FAULT_DOMAIN, [name for name in others if {self._domains[name]} != self._domains_of(counted)]
        return "", []

    def _is_larger_than_the_limits(self, event: _Planned) -> bool:
        counted = self._counted(event)
        too_many = self._limits.at_most is not None and len(counted) > self._limits.at_most
        return too_many or (self._limits.one_fault_domain and len(self._domains_of(counted)) > 1)

    def _counted(self, event: _Planned) -> set[str]:
        return {name for name in event["hosts"] if name in self._limits.group}

    def _domains_of(self, names: t.Iterable[str]) -> set[str]:
        return {self._domains[name] for name in names}

    def _approval(self, event: _Planned) -> dict[str, t.Any]:
        """Return whether the event will be approved if all hosts prepare, and why not."""
        if event["action"] == WAIT:
            why_not = "it waits"
        elif event["because"] == DEADLINE:
            why_not = "it is too late to prepare"
        else:
            reports, _hosts = reports_by_vm(
                self._owners, {host.name: self._report(host, event) for host in self._hosts}, None
            )
            why_not = "; ".join(map(str, obstacles(reports, "no host of this play is known to be this VM")))
        return {"approve": not why_not, "why_not": why_not}

    def _report(self, host: MaintenanceHost, event: _Planned) -> Report:
        """Return what the host will say about the event if it prepares as planned."""
        sighting = sighting_of(host.listings(event["key"]))
        if event["action"] == NO_PREPARATION:
            return Report(sighting, True)  # what prevents the preparation is the reason
        text = "" if host.has_preparation else "it has no preparation"
        if sighting is not None and not text:
            kind = sighting.event.event_type
            if not any(counts_for(done, kind) for done in self._types[host.name]):
                text = f"its preparation does not count for {kind}"
        return Report(sighting, True, Obstacle("not_prepared", text) if text else None)


def _to_prepare(events: t.Iterable[_Planned]) -> list[_Planned]:
    return [event for event in events if event["action"] != NO_PREPARATION]


def _most_urgent_first(events: t.Iterable[_Planned]) -> list[_Planned]:
    return most_urgent_first(events, lambda event: Urgency(event["event_type"], event["left"], event["key"]))


def describe(event: t.Mapping[str, t.Any], limits: Limits) -> str:
    """Return a sentence that says why the run does this about the planned event, or ""."""
    others = ", ".join(event["waits_for"])
    count = "1 host" if limits.at_most == 1 else f"{limits.at_most} hosts"
    return {
        AT_MOST: f"at most {count} at a time; out of service: {others}",
        FAULT_DOMAIN: f"one fault domain at a time; out of service in another one: {others}",
        NOT_BEFORE: "the limits yield, because it starts soon",
        ALONE: "it has more hosts or fault domains than the limits allow, and is taken alone",
        STARTED: "it has started",
        UNKNOWN_STATUS: f"its status {event['status']!r} is unknown",
        DEADLINE: f"it starts within {limits.deadline:g} seconds, too late to prepare",
    }.get(event["because"], "")


def _as_text(moment: float) -> str:
    """Return the time in the format of the other times of a run; one that no calendar has is the last day of it."""
    return datetime.fromtimestamp(min(moment, _LATEST), timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _server_time(hosts: t.Iterable[MaintenanceHost], now: float) -> float:
    """Return the time by the clock of IMDS, at most as many seconds too late as it took to read the events of a host.

    It is the middle one of all hosts: one wrong date must not make the events of the others late.
    """
    read = ((parse_time(host.server_time), host.asked_at) for host in hosts if host.server_time)
    known = sorted(
        moment.timestamp() + max(0.0, now - asked_at)
        for moment, asked_at in read
        if moment is not None and asked_at is not None
    )
    return known[len(known) // 2] if known else now


def table_of_plan(events: t.Sequence[t.Mapping[str, t.Any]]) -> list[str]:
    """Return the lines of a table with the planned events, each of which also has the sentence ``why``."""
    if not events:
        return ["no host has an event to prepare for"]
    cells = [["event", "not before", "hosts", "wave", "action", "approve", "why"]]
    for event in events:
        reasons = [event["why"]]
        if event["action"] == PREPARE and event["why_not"]:
            reasons.append("not approved: " + event["why_not"])
        cells.append(
            [
                f"{event['event_type']} {event['event_id']}",
                event["not_before"] or "-",
                ",".join(event["hosts"]) or "-",
                str(event["wave"]),
                event["action"],
                "yes" if event["approve"] else "no",
                "; ".join(filter(None, reasons)),
            ]
        )
    widths = [max(map(len, column)) for column in zip(*cells)]
    return [printable("  ".join(text.ljust(width) for text, width in zip(line, widths)).rstrip()) for line in cells]
