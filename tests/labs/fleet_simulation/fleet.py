# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A fleet of hook runners in virtual time: events of all types, faults, and the invariants that hold."""

from __future__ import annotations

import collections
import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from azure_scheduled_events.errors import ImdsRefused, ImdsUnreachable
from fleet_simulation.agenda import Agenda
from fleet_simulation.azure_model import NOTICE, Event, Group, make_groups
from fleet_simulation.coordinator import COORDINATOR, Coordinator, Decision
from fleet_simulation.host import Host
from fleet_simulation.ledger import Violation
from fleet_simulation.profiles import make_profiles
from maintenance_world.azure import REBOOTING, REMOVING, SCHEDULED, STARTED

KINDS = ("Freeze", "Freeze", "Reboot", "Reboot", "Redeploy", "Preempt", "Terminate")
LEADERS = ("self-only", "first", "external", "external")
# a client that is not under test
USER = "user"
# seconds after the last announcement within which all events end, and most hosts recover
ENDS_WITHIN = 2250.0
# seconds of notice in which a host without faults is prepared: two hooks, and the lag of a backend
ENOUGH_NOTICE = 240.0
# seconds after which each host has had a document, once both backends had it
POLLED_WITHIN = 5.0


@dataclass
class Plan:
    """One run; the same plan gives the same run.

    Attributes:
        group_sizes: VMs of a group, drawn for each group.
        events_per_vm_hour: how often an event affects a VM.
        faults: faults of hosts for each event: kills, reboots, outages of IMDS.
        failing_hooks: share of the hook runs that fail; half of them hang until their time limit.
        lost_requests: share of the approvals of which the request or the answer is lost.
        by_user: share of the events that another client approves.
        changes: share of the events that are cancelled, moved, changed, or missing for a moment.
        changes_at_approval: share of the decisions of a daemon to approve, after which the event changes at once.
        longest_lag: seconds by which the second backend is late at most.
    """

    seed: int
    vms: int
    events: int
    events_per_vm_hour: float = 4.0
    group_sizes: tuple[int, ...] = (1, 1, 2, 2, 3, 3, 5, 5, 8, 20)
    faults: float = 0.4
    failing_hooks: float = 0.05
    lost_requests: float = 0.1
    by_user: float = 0.02
    changes: float = 0.2
    changes_at_approval: float = 0.05
    longest_lag: float = 8.0


class Fleet:
    """Runs one plan.

    Attributes:
        counts: what happened, by name.
    """

    def __init__(self, plan: Plan, folder: Path) -> None:
        self.plan = plan
        self.agenda = Agenda()
        self.chance = random.Random(plan.seed)
        self.counts: collections.Counter[str] = collections.Counter()
        self.groups = make_groups(plan.vms, plan.group_sizes, self.chance)
        self.hosts: dict[str, Host] = {}
        self.events: dict[str, Event] = {}
        self._last_over: dict[str, float] = {}
        profiles = list(make_profiles(folder).values())
        for group in self.groups:
            leader = self.chance.choice(LEADERS)
            for name in group.vms:
                self.hosts[name] = Host(
                    name,
                    group,
                    self.chance.choice(profiles),
                    leader,
                    folder / "hosts",
                    self.agenda,
                    self.chance,
                    self._approve_from,
                    self._decided,
                    plan.failing_hooks,
                )
            if leader == "external" and len(group.vms) > 1:
                Coordinator(group, self.hosts, self.agenda, self.chance, plan.lost_requests, self._coordinated).begin()

    def run(self) -> list[Violation]:
        """Run to the end, or to the first violation; return the violations."""
        random.seed(self.plan.seed)  # the poller's jitter
        for host in self.hosts.values():
            self.agenda.at(self.chance.uniform(0.0, 5.0), host.power_on)
        last = self._announce_all()
        self._disturb_all(last)
        while self.agenda.now < last + ENDS_WITHIN and not self.violations():
            self.agenda.run_until(self.agenda.now + 60.0)
        self.counts["hooks prepared"] = sum(host.ledger.prepared for host in self.hosts.values())
        self.counts["hooks recovered"] = sum(host.ledger.recovered for host in self.hosts.values())
        return self.violations()

    def violations(self) -> list[Violation]:
        """Return the violations so far, the first one first."""
        found = [violation for host in self.hosts.values() for violation in host.ledger.violations]
        return sorted(found, key=lambda violation: violation.at)

    def _announce_all(self) -> float:
        """Put all events on the agenda; return the moment of the last one."""
        weights = [len(group.vms) for group in self.groups]
        rate = self.plan.events_per_vm_hour * self.plan.vms / 3600.0 / 2.0  # an event affects about two VMs
        at = 20.0
        for number in range(self.plan.events):
            at += self.chance.expovariate(rate)
            group = self.chance.choices(self.groups, weights)[0]
            self.agenda.at(at, partial(self._announce, number, group))
        return at

    def _announce(self, number: int, group: Group) -> None:
        now, chance = self.agenda.now, self.chance
        kind = chance.choice(KINDS)
        count = min(len(group.vms), chance.choice((1, 1, 1, 2, 3, len(group.vms))), 20)
        vms = tuple(chance.sample(group.vms, count))
        lasts = chance.uniform(2.0, 10.0) if kind == "Freeze" else chance.uniform(20.0, 90.0)
        event = Event(f"E{number:05d}-{kind}", kind, group, vms, now, now + NOTICE[kind], lasts)
        self.events[event.event_id] = event
        group.events.append(event)
        self.counts["events"] += 1
        self.counts[kind] += 1
        self._publish(event)
        self.agenda.at(event.not_before, partial(self._not_before, event))
        if chance.random() < self.plan.by_user:
            self.agenda.after(chance.uniform(1.0, 200.0), partial(self._approve_as_user, event))
        if chance.random() < self.plan.changes:
            change = chance.choice((self._cancel, self._move, self._move, self._retype, self._resize, self._hide))
            self.agenda.after(chance.uniform(1.0, 0.8 * NOTICE[kind]), partial(change, event))

    def _publish(self, event: Event) -> None:
        longest = self.plan.longest_lag
        lag = self.chance.choice((0.0, 0.0, 0.0, 0.0, longest / 4, longest)) * self.chance.random()
        event.group.publish(self.agenda.now, lag)
        for name in event.group.vms:
            self.hosts[name].document_changed()

    # approvals

    def _approve_from(self, host: Host, event_id: str) -> None:
        if self.agenda.now < host.outage_until:
            raise ImdsUnreachable("no answer within 5 s")
        event = self.events[event_id]
        host.ledger.note(self.agenda.now, f"approves {event_id}")
        lost = self.chance.random()
        if lost < self.plan.lost_requests / 2:
            raise ImdsUnreachable("the request was lost")
        if lost < self.plan.lost_requests * 0.6:
            raise ImdsRefused("IMDS answered 400", status=400, retryable=False)
        host.ledger.approves(event.key, self.agenda.now)
        self._check_leader(host, event)
        self._approve(event, host.name)
        if lost < self.plan.lost_requests:
            host.ledger.disturbed(self.agenda.now, "the answer is lost")
            raise ImdsUnreachable("the answer was lost")

    def _check_leader(self, host: Host, event: Event) -> None:
        """A daemon approves events of its own VM alone, or as `leader: first` in its turn."""
        listed = host.ledger.listed(event.key)
        if listed is None or listed.resources == (host.name,):
            return
        if host.leader == "first":
            waits = sorted(listed.resources).index(host.name) * host.profile.settings.takeover_after
            if self.agenda.now - event.announced_at >= waits - 1.0:
                return
        self._violated("approval by the leader", host.name, event, f"with leader {host.leader}")

    def _approve(self, event: Event, client: str) -> None:
        if event.status != SCHEDULED or event.is_over:
            return
        self.counts["approved by the coordinator" if client == COORDINATOR else f"approved by {_kind_of(client)}"] += 1
        event.approvals.append((self.agenda.now, client))
        if len(event.approvals) == 1:
            self.agenda.after(self.chance.uniform(0.3, 5.0), partial(self._start, event))

    def _decided(self, event_id: str) -> None:
        """Let an event change while a daemon sends its approval."""
        if self.chance.random() < self.plan.changes_at_approval:
            change = self.chance.choice((self._retype, self._resize, self._hide))
            self.agenda.after(self.chance.random(), partial(change, self.events[event_id]))

    def _coordinated(self, decision: Decision) -> None:
        """Take the approval of a coordinator; all VMs must have prepared when it read them."""
        event = self.events[decision.event_id]
        for name in decision.resources:
            unprepared = decision.evidence.get(name, "it has not reported that it has prepared")
            if unprepared:
                self._violated("approval after all have prepared", name, event, unprepared)
        # VMs that the event got before the reads
        known_since = max(event.group.settled_at, event.changed_at) + POLLED_WITHIN
        for name in set(event.vms).difference(decision.resources):
            if decision.read_at > known_since:
                self._violated("approval after all have prepared", name, event, "the coordinator did not regard it")
        self._approve(event, COORDINATOR)

    def _approve_as_user(self, event: Event) -> None:
        if event.status == SCHEDULED and not event.is_over:
            self._approve(event, USER)

    # the course of an event

    def _not_before(self, event: Event) -> None:
        if self.agenda.now >= event.not_before and not event.approvals:
            self._start(event)

    def _start(self, event: Event) -> None:
        if event.status != SCHEDULED or event.is_over:
            return
        event.status, event.is_listed = STARTED, True
        for name in event.vms:
            self._note_interruption(self.hosts[name], event)
        self._publish(event)
        impact = self.chance.uniform(0.5, 4.0)
        for name in event.vms:
            host = self.hosts[name]
            if event.kind in REBOOTING:
                text = f"{event.event_id} reboots the VM"
                self.agenda.after(impact / 2, partial(host.reboot, impact / 2, 0.7 * event.lasts, text))
            elif event.kind in REMOVING:
                self.agenda.after(impact, partial(host.replace, event.lasts + 30.0, self.chance.random() < 0.3))
        self.agenda.after(impact + event.lasts, partial(self._end, event))

    def _end(self, event: Event) -> None:
        if event.is_over:
            return
        event.is_over, event.is_listed = True, False
        event.group.events.remove(event)
        for name in event.vms:
            self._last_over[name] = self.agenda.now
        self._publish(event)

    def _note_interruption(self, host: Host, event: Event) -> None:
        """Count in which state an event finds a VM; a host without faults must be prepared."""
        unprepared = host.ledger.unprepared(event.key, event.kind)
        approver = event.approvals[0][1] if event.approvals else ""
        if not unprepared:
            self.counts["VMs interrupted, prepared"] += 1
            return
        cause = f"approval by {_kind_of(approver)}" if approver else "NotBefore"
        self.counts[f"VMs interrupted, not prepared, by {cause}"] += 1
        notice = event.not_before - event.announced_at
        if not approver and notice >= ENOUGH_NOTICE and self._is_calm(host, event):
            self._violated("prepared before NotBefore", host.name, event, unprepared)

    def _is_calm(self, host: Host, event: Event) -> bool:
        """Return True if only this event, as it was announced, happened to a host since then."""
        others = [other for other in event.group.events if other.is_listed and host.name in other.vms]
        latest = max(host.ledger.disturbed_at, self._last_over.get(host.name, -1.0), event.changed_at)
        return latest < event.announced_at and others == [event] and host.is_up

    # changes of an event

    def _cancel(self, event: Event) -> None:
        if event.status == SCHEDULED and not event.approvals:
            self.counts["cancelled"] += 1
            event.changed_at = self.agenda.now
            self._end(event)

    def _move(self, event: Event) -> None:
        if event.status != SCHEDULED or event.is_over:
            return
        self.counts["NotBefore moved"] += 1
        left = event.not_before - self.agenda.now
        event.not_before = self.agenda.now + max(5.0, left + self.chance.choice((-0.5 * left, 120.0, 600.0)))
        event.changed_at = self.agenda.now
        self._publish(event)
        self.agenda.at(event.not_before, partial(self._not_before, event))

    def _retype(self, event: Event) -> None:
        if event.status == SCHEDULED and not event.is_over and event.kind in ("Freeze", "Reboot", "Redeploy"):
            self.counts["type changed"] += 1
            event.kind = self.chance.choice(("Freeze", "Reboot", "Redeploy"))
            event.changed_at = self.agenda.now
            self._publish(event)

    def _resize(self, event: Event) -> None:
        """Let the event affect one VM more or less."""
        others = [name for name in event.group.vms if name not in event.vms]
        if event.status != SCHEDULED or event.is_over or not (others or len(event.vms) > 1):
            return
        self.counts["Resources changed"] += 1
        if others and (len(event.vms) == 1 or self.chance.random() < 0.5):
            event.vms = (*event.vms, self.chance.choice(others))
        else:
            self._last_over[event.vms[-1]] = self.agenda.now
            event.vms = event.vms[:-1]
        event.changed_at = self.agenda.now
        self._publish(event)

    def _hide(self, event: Event) -> None:
        """Let the event be missing for a moment, or for longer than the daemon waits for its return."""
        if event.status == SCHEDULED and not event.is_over:
            self.counts["missing for a moment"] += 1
            event.changed_at = self.agenda.now
            event.is_listed = False
            self._publish(event)
            self.agenda.after(self.chance.choice((1.5, 10.0, 45.0, 90.0)), partial(self._show, event))

    def _show(self, event: Event) -> None:
        if not event.is_over and not event.is_listed:
            event.is_listed, event.changed_at = True, self.agenda.now
            self._publish(event)

    # faults of hosts

    def _disturb_all(self, last: float) -> None:
        names = list(self.hosts)
        faults: tuple[Callable[[Host], None], ...] = (self._kill, self._kill_at_write, self._crash, self._outage)
        for _fault in range(int(self.plan.faults * self.plan.events)):
            host = self.hosts[self.chance.choice(names)]
            self.agenda.at(self.chance.uniform(10.0, last), partial(self.chance.choice(faults), host))

    def _kill(self, host: Host) -> None:
        self.counts["daemons killed"] += 1
        host.kill_daemon(self.chance.choice((0.2, 5.0, 60.0)))

    def _kill_at_write(self, host: Host) -> None:
        self.counts["daemons killed at a write"] += 1
        host.kill_at_write(self.chance.choice(("begin", "state", "mark", "end")))

    def _crash(self, host: Host) -> None:
        self.counts["hosts crashed"] += 1
        host.go_down(self.chance.uniform(10.0, 60.0), "the host crashes")

    def _outage(self, host: Host) -> None:
        self.counts["outages of IMDS"] += 1
        host.fail_imds(self.chance.choice((3.0, 20.0, 90.0)))

    def _violated(self, invariant: str, host: str, event: Event, text: str) -> None:
        self.hosts[host].ledger.violated(invariant, event.key, text, self.agenda.now)


def _kind_of(client: str) -> str:
    return client if client in (COORDINATOR, USER) else "a daemon"
