# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The invariants of approvals: (a), (b), (k), (q)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from azure_scheduled_events.document import ScheduledEvent
from hook_runner.records import RECOVER
from maintenance_world.azure import ADVICE, OWN
from maintenance_world.evidence import SEVERITY, UNKNOWN_TYPE, Evidence

if TYPE_CHECKING:
    from maintenance_world.world import World

# seconds after which an approval has to be sent that nothing prevents
_SENDS_WITHIN = 8


class ApprovalChecks:
    """Checks each approval that arrives at IMDS, and that those are sent that nothing prevents."""

    def __init__(self, world: World, seen: Evidence) -> None:
        self._world, self._seen = world, seen
        self._ready_since: dict[str, int] = {}

    def check_post(self, key: str) -> None:
        """Check an approval that arrives now."""
        seen, world = self._seen, self._world
        last = seen.last_event(key)
        if last is None or last.status != "Scheduled" or key in seen.read[-1].document.doubtful:
            seen.violate(f"(a) POST {key}: the last document does not list it as Scheduled with its VMs")
            return
        if seen.read[-1].second != world.second:
            seen.violate(f"(a) POST {key} after a failed poll")
        if world.daemon is not None and world.daemon.documents < 2:
            seen.violate(f"(a) POST {key} after one document")
        if world.plan.settings.dry_run:
            seen.violate(f"(a) POST {key} in a dry run")
        why_not = (self._not_asked(last), self._not_by_rule(last))
        if all(why_not):
            seen.violate(f"(a) POST {key}: {'; '.join(why_not)}")
        if seen.gap_at.get(key, -1) < seen.accepted.get(key, -1):
            seen.violate(f"(q) POST {key} again, although IMDS has taken it")
        asked = seen.asked.get(key)
        if asked is None or not asked.request.force:
            self._check_disk(key)

    def check_second(self, own: list[ScheduledEvent]) -> None:
        """(k) What may be approved is approved."""
        seen, world, plan = self._seen, self._world, self._world.plan
        is_possible = plan.rule.approve in ("now", "after_prepare") and not plan.settings.dry_run
        is_open = not plan.rule.needs_gate or world.is_gate_open
        is_checked = is_possible and is_open and not seen.is_troubled and not world.is_disk_full()
        ready = {event.key for event in own if self._is_ready(event)} if is_checked else set()
        self._ready_since = {key: self._ready_since.get(key, world.second) for key in ready}
        for key, since in self._ready_since.items():
            is_sent = any(each == key and second >= seen.first_own[key] for second, each in seen.posts)
            if world.second - since > _SENDS_WITHIN and not is_sent:
                seen.violate(f"(k) {key} could be approved since {since}")

    def forget(self) -> None:
        """Note a second without a document."""
        self._ready_since.clear()

    def _check_disk(self, key: str) -> None:
        """(b) The disk has what the approval relies on."""
        seen, disk, daemon = self._seen, self._world.disk, self._world.daemon
        if daemon is None:
            return
        if disk.open() != daemon.records.maintenance or disk.state() != daemon.records.state:
            seen.violate(f"(b) POST {key}: the disk has another state")
        if seen.is_paused and disk.is_paused:
            seen.violate(f"(a) POST {key} in a pause")

    def _not_asked(self, event: ScheduledEvent) -> str:
        """Return why no operator has asked for this approval; "" if one has."""
        asked = self._seen.asked.get(event.key)
        if asked is None:
            return "no operator asked"
        names = self._seen.names(event.key, self._seen.read[-2:])
        if not names <= asked.vms or event.event_type != asked.event_type:
            return f"an operator asked for {asked.event_type} of {sorted(asked.vms)}, and it is for {sorted(names)}"
        if names != {OWN} and not asked.request.release_others:
            return f"an operator did not release others than this VM: {sorted(names)}"
        if asked.request.force or self._seen.is_prepared(event.key, event.event_type):
            return ""
        return "an operator asked without force, and this VM is not prepared"

    def _not_by_rule(self, event: ScheduledEvent) -> str:
        """Return why no rule approves the event; "" if one does."""
        plan, seen = self._world.plan, self._seen
        names = seen.names(event.key, seen.read[-2:])
        types = {each.event_type for read in seen.read[-2:] for each in read.document.events if each.key == event.key}
        # one document makes an event more severe, not less: it may come from a backend that lags behind
        if plan.rule.approve not in ("now", "after_prepare") or event.event_type == UNKNOWN_TYPE or types == {ADVICE}:
            return "no rule approves it"
        if plan.rule.needs_gate and not self._world.is_gate_open:
            return "its gate is closed"
        if OWN not in names or (names != {OWN} and plan.settings.leader != "first"):
            return f"no rule releases {sorted(names)}"
        turn = sorted(names).index(OWN)
        age = self._world.second - seen.first_listed.get(event.key, 0)
        if turn and not seen.is_lost and not plan.jumps and age < turn * plan.settings.takeover_after:
            return "another VM is the leader"
        needs_success = plan.rule.approve == "after_prepare" and not plan.rule.approves_failed
        types = {each for each in types if SEVERITY.get(each, 9) >= SEVERITY[event.event_type]}
        if needs_success and not all(seen.is_prepared(event.key, each) for each in types):
            return f"this VM is not prepared for {sorted(types)}"
        return ""

    def _is_ready(self, event: ScheduledEvent) -> bool:
        """Return True if the event could be approved for this VM alone, as far as the evidence shows it."""
        seen, key = self._seen, event.key
        if event.status != "Scheduled" or event.event_type in (UNKNOWN_TYPE, ADVICE) or key in seen.first_started:
            return False
        if any(not read.document.complete or key in read.document.doubtful for read in seen.read):
            return False
        reads = [read for read in seen.read if any(each.key == key for each in read.document.events)]
        if seen.names(key, reads) != {OWN} or len(reads) < 2 or reads[-2].second < self._world.second - 3:
            return False
        if any(unit.stage == RECOVER for unit in self._world.units.running()) or seen.is_lost:
            return False
        return seen.is_prepared(key, event.event_type, is_strict=True)
