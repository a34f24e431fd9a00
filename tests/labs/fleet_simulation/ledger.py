# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The history of one host, noted outside its daemon: documents, hook runs, boots. Finds violations at once."""

from __future__ import annotations

import collections
from collections.abc import Mapping
from typing import NamedTuple

from azure_scheduled_events.document import EventDocument, ScheduledEvent
from azure_scheduled_events.identity import affects
from azure_scheduled_events.urgency import counts_for
from fleet_simulation.profiles import Profile
from hook_runner.hooks.discovery import Hook
from hook_runner.records import PREPARE, RECOVER
from maintenance_world.azure import SCHEDULED
from maintenance_world.units import Unit

# lines of the log that are kept for each host
LINES = 300
# latest runs of a prepare hook that are kept
RUNS = 30


class Violation(NamedTuple):
    """A broken invariant: its name, the host, the event, what happened, when, and the log of the host until then."""

    invariant: str
    host: str
    key: str
    text: str
    at: float
    log: tuple[tuple[float, str], ...] = ()


class Ledger:
    """The evidence of one host.

    Attributes:
        violations: found so far.
        log: (moment, text) since the host was idle last.
        disturbed_at: latest moment of a fault on this host, or of a hook that failed.
        prepared, recovered: number of hook runs that succeeded.
    """

    def __init__(self, host: str, profile: Profile) -> None:
        self.host = host
        self.violations: list[Violation] = []
        self.log: collections.deque[tuple[float, str]] = collections.deque(maxlen=LINES)
        self.disturbed_at = float("-inf")
        self.prepared = self.recovered = 0
        self._hooks = profile.hooks
        self._booted_at = float("-inf")
        self._runs: dict[str, collections.deque[Unit]] = {}
        # moment at which a recover hook began last
        self._undone_at = float("-inf")
        # the events of the last document, those of this host by key, and each event as it was listed last
        self._document: tuple[ScheduledEvent, ...] = ()
        self._listed: Mapping[str, ScheduledEvent] | None = None
        self._latest: dict[str, ScheduledEvent] = {}

    def note(self, now: float, text: str) -> None:
        self.log.append((now, text))

    def disturbed(self, now: float, text: str) -> None:
        """Note a fault."""
        self.disturbed_at = max(self.disturbed_at, now)
        self.note(now, text)

    def daemon_is_idle(self) -> None:
        """Note that the daemon has nothing left to do; the log begins again."""
        self.log.clear()
        self._latest = dict(self._listed or {})

    def document(self, now: float, document: EventDocument) -> None:
        """Note a good document that this host received."""
        if document.events is self._document and self._listed is not None:
            return
        shown = " ".join(f"{event.event_id}={event.status}/{event.event_type}" for event in document.events)
        self.note(now, f"document: {shown}")
        self._document = document.events
        self._listed = {event.key: event for event in document.events if affects(event, self.host)}
        self._latest.update(self._listed)

    def poll_failed(self) -> None:
        self._listed = None

    def run_began(self, now: float, unit: Unit) -> None:
        """Note the begin of a hook."""
        self.note(now, f"begins {unit.title} for {unit.key}, run {unit.number}")
        if unit.stage == RECOVER:
            self._undone_at = now
        if unit.stage == PREPARE:
            self._runs.setdefault(unit.name, collections.deque(maxlen=RUNS)).append(unit)

    def run_ended(self, now: float, unit: Unit) -> None:
        """Note the end of a hook."""
        is_good = unit.exit_status == 0
        what = "ends" if is_good else f"fails ({unit.cause.value or unit.exit_status})"
        self.note(now, f"{what} {unit.title} for {unit.key}, run {unit.number}")
        if not is_good:
            self.disturbed_at = max(self.disturbed_at, now)
            return
        self.prepared += unit.stage == PREPARE
        self.recovered += unit.stage == RECOVER

    def boot_ended(self, now: float, text: str) -> None:
        """Note the end of a boot."""
        self.disturbed(now, text)
        self._booted_at = now

    def is_another_vm(self, now: float) -> None:
        """Forget everything: another VM has the name."""
        self._runs.clear()
        self._latest.clear()
        self._listed = None
        self.disturbed_at = now

    def listed(self, key: str) -> ScheduledEvent | None:
        """Return the event as the last answer of IMDS listed it for this host; None without it or without an answer."""
        return None if self._listed is None else self._listed.get(key)

    def approves(self, key: str, now: float) -> None:
        """Check an approval by the daemon of this host."""
        event = self.listed(key)
        if event is None or event.status != SCHEDULED:
            text = "the last answer of IMDS does not list it" if event is None else event.status
            self.violated("approval of a scheduled event", key, text, now)
            return
        why_not = self.unprepared(key, event.event_type)
        if why_not:
            self.violated("approval after preparation", key, why_not, now)

    def reports_prepared(self, key: str) -> str:
        """Return why the report that this host is prepared is wrong; "" if it is right."""
        latest = self._latest.get(key)
        return self.unprepared(key, latest.event_type) if latest else "no document has listed it"

    def unprepared(self, key: str, kind: str) -> str:
        """Return why this host is not prepared for an event of this type; "" if it is."""
        for hook in self._hooks.get(PREPARE, ()):
            if hook.settings.on_failure == "ignore" or (hook.settings.types and kind not in hook.settings.types):
                continue
            runs = self._runs.get(hook.name, ())
            # a success counts for each event that is not more severe
            good = [run for run in runs if _is_good(run) and counts_for(run.event_type, kind)]
            reasons = [self._lost(hook, run) for run in good]
            if "" in reasons:
                continue
            own = [run for run in runs if run.key == key]
            if reasons:
                return reasons[-1]
            return (
                f"{hook.name} {'failed' if own[-1].has_ended else 'runs'}" if own else f"{hook.name} never ran for it"
            )
        return ""

    def _lost(self, hook: Hook, run: Unit) -> str:
        """Return what has undone a run of a prepare hook, or ""."""
        if run.began < self._booted_at and not hook.settings.persists:
            return f"the host has rebooted after {hook.name}"
        return "a recover hook has undone it" if self._undone_at > run.began else ""

    def violated(self, invariant: str, key: str, text: str, now: float) -> None:
        """Add a violation, with the log since the host was idle."""
        self.violations.append(Violation(invariant, self.host, key, text, now, tuple(self.log)))


def _is_good(run: Unit) -> bool:
    return run.has_ended and run.exit_status == 0
