# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A fleet of hook runners in virtual time: events of all types, faults, and the invariants that hold."""

from __future__ import annotations

import collections
import random
from collections.abc import Callable
from functools import partial
from pathlib import Path

from azure_scheduled_events.errors import ImdsRefused, ImdsUnreachable
from fleet_simulation.agenda import Agenda
from fleet_simulation.azure_model import NOTICE, REBOOTING, REMOVING, SCHEDULED, STARTED, Event, Group, make_groups
from fleet_simulation.coordinator import COORDINATOR, Coordinator, Decision
from fleet_simulation.host import Host
from fleet_simulation.ledger import Violation
from fleet_simulation.plan import Plan
from fleet_simulation.profiles import HOOK_TIMEOUT, make_profiles
from hook_runner.maintenance.hook_plan import LONGEST_RECOVER_PAUSE

KINDS = ("Freeze", "Freeze", "Reboot", "Reboot", "Redeploy", "Preempt", "Terminate")
LEADERS = ("self-only", "first", "external", "external")
# a client that is not under test
USER = "user"
# seconds between two searches for hosts that stay prepared, and the longest time that they may
AUDIT_INTERVAL, RECOVERED_WITHIN = 60.0, 300.0
# the same after a hook that failed: the daemon repeats it after a pause that grows, and the other hooks follow
RECOVERED_AFTER_FAILURE = LONGEST_RECOVER_PAUSE + 2 * HOOK_TIMEOUT
# seconds of notice in which a host without faults is prepared: two hooks, and the lag of a backend
ENOUGH_NOTICE = 240.0
# seconds after which each host has had a document, once both backends had it
POLLED_WITHIN = 5.0


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
        self._ends_at = 0.0
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

    def run(self, stops_at_violation: bool = False) -> list[Violation]:
        random.seed(self.plan.seed)  # the poller's jitter
        for host in self.hosts.values():
            self.agenda.at(self.chance.uniform(0.0, 5.0), host.power_on)
        last = self._announce_all()
        self._disturb_all(last)
        # all events end within this time; then nothing may be left to do
        self._ends_at = last + 1.5 * max(NOTICE.values())
        self.agenda.at(60.0, self._audit)
        while self.agenda.now < self._ends_at + 3 * RECOVERED_WITHIN:
            self.agenda.run_until(self.agenda.now + AUDIT_INTERVAL)
            if stops_at_violation and self.violations():
                break
        else:
            self._check_end()
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
        self._check_once(host.name, event, host.ledger.disturbed_at)
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

    def _check_once(self, client: str, event: Event, disturbed_at: float) -> None:
        """A client without faults sends one approval for each event."""
        earlier = [at for at, other in event.approvals if other == client]
        if earlier and event.status == SCHEDULED and max(disturbed_at, event.changed_at) < earlier[-1]:
            self._violated("approval once", client, event, f"was approved {self.agenda.now - earlier[-1]:.1f} s before")

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
            event.is_by_user = True
            self._approve(event, USER)

    # the course of an event

    def _not_before(self, event: Event) -> None:
        if self.agenda.now >= event.not_before and not event.approvals:
            self._start(event)

    def _start(self, event: Event) -> None:
        if event.status != SCHEDULED or event.is_over:
            return
        event.status, event.started_at, event.is_listed = STARTED, self.agenda.now, True
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
        unprepared = host.ledger.unprepared(event.key, event.kind, self.agenda.now)
        approver = event.approvals[0][1] if event.approvals else ""
        if not unprepared:
            self.counts["VMs interrupted, prepared"] += 1
            return
        cause = f"approval by {_kind_of(approver)}" if approver else "NotBefore"
        self.counts[f"VMs interrupted, not prepared, by {cause}"] += 1
        notice = event.not_before - max(event.announced_at, event.changed_at)
        if not approver and notice >= ENOUGH_NOTICE and self._is_calm(host, event):
            self._violated("prepared before NotBefore", host.name, event, unprepared)

    def _is_calm(self, host: Host, event: Event) -> bool:
        """Return True if only this event happened to a host since the announcement."""
        others = [other for other in event.group.affecting(host.name) if other is not event]
        since = min(event.announced_at, event.announced_at if event.changed_at < 0 else event.changed_at)
        quiet = max(host.ledger.disturbed_at, self._last_over.get(host.name, -1.0), event.changed_at) < since
        return quiet and not others and host.is_up

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

    # invariants over time

    def _audit(self) -> None:
        """Find hosts that stay prepared although nothing hinders their recovery."""
        now = self.agenda.now
        for host in self.hosts.values():
            ledger = host.ledger
            if not ledger.to_undo or not host.is_up or host.group.affecting(host.name):
                continue
            since = max(ledger.disturbed_at, self._last_over.get(host.name, 0.0), host.group.settled_at)
            hidden = any(host.name in event.vms for event in host.group.events)
            if not hidden and now - since > RECOVERED_WITHIN and self._has_repeated(host):
                ledger.violated("recovered in time", "", f"to undo: {', '.join(ledger.to_undo)}", now)
                ledger.to_undo.clear()
        self.agenda.after(AUDIT_INTERVAL, self._audit)

    def _has_repeated(self, host: Host) -> bool:
        """Return True if a hook that failed must have been repeated since."""
        return self.agenda.now - host.ledger.failed_at > RECOVERED_AFTER_FAILURE

    def _check_end(self) -> None:
        for host in self.hosts.values():
            if (not host.is_idle or host.ledger.to_undo) and self._has_repeated(host):
                records = [] if host.daemon is None else [each.key for each in host.daemon.runner.records.known]
                text = f"up: {host.is_up}, records: {records}, to undo: {', '.join(host.ledger.to_undo)}"
                host.ledger.violated("idle at the end", "", text, self.agenda.now)

    def _violated(self, invariant: str, host: str, event: Event, text: str) -> None:
        self.hosts[host].ledger.violated(invariant, event.key, text, self.agenda.now)


def _kind_of(client: str) -> str:
    return client if client in (COORDINATOR, USER) else "a daemon"
