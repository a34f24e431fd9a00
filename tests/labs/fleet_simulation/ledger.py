# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The history of one host, noted outside its daemon: documents, hook runs, boots. Finds violations at once."""

from __future__ import annotations

import collections
from typing import NamedTuple

from azure_scheduled_events.document import EventDocument, ScheduledEvent
from azure_scheduled_events.identity import affects
from azure_scheduled_events.urgency import counts_for
from fleet_simulation.azure_model import SCHEDULED
from fleet_simulation.profiles import Profile
from hook_runner.hooks.discovery import Hook
from hook_runner.records import PREPARE, RECOVER
from maintenance_world.units import Unit

# seconds that documents without an event have to span, less what floating point loses
GONE_AFTER = 2.0 - 0.001
# lines of the log that are kept for each host
LINES = 300
# latest runs of a prepare hook that are kept
RUNS = 30


class Violation(NamedTuple):
    """A broken invariant: its name, the host, the event, what happened, and the log of the host until then."""

    invariant: str
    host: str
    key: str
    text: str
    at: float
    log: tuple[tuple[float, str], ...]


class Run:
    """One run of a prepare hook, for an event that had this type then."""

    __slots__ = ("began", "ended", "key", "kind", "ok")

    def __init__(self, key: str, kind: str, began: float) -> None:
        self.key, self.kind, self.began = key, kind, began
        self.ended = float("inf")
        self.ok = False


class Presence:
    """Whether the documents that this host received list an event for it, and how the last of them listed it."""

    __slots__ = ("absences", "is_gone", "latest", "missing_since")

    def __init__(self, latest: ScheduledEvent) -> None:
        self.absences = 0
        self.missing_since = 0.0
        self.is_gone = False
        self.latest = latest


class Ledger:
    """The evidence of one host.

    Attributes:
        violations: found so far.
        log: (moment, text) since the host was idle last.
        disturbed_at: latest moment of a fault on this host, or of a hook that failed.
        failed_at: latest moment at which a hook failed.
        idle_at: since when nothing is left to do; None while something is.
        prepared, recovered: number of hook runs that succeeded.
    """

    def __init__(self, host: str, profile: Profile) -> None:
        self.host = host
        self.violations: list[Violation] = []
        self.log: collections.deque[tuple[float, str]] = collections.deque(maxlen=LINES)
        self.disturbed_at = self.failed_at = float("-inf")
        self.idle_at: float | None = 0.0
        self.prepared = self.recovered = 0
        self._hooks = profile.hooks
        self._booted_at = float("-inf")
        self._presence: dict[str, Presence] = {}
        self._runs: dict[str, collections.deque[Run]] = {}
        self._running: dict[int, Run] = {}
        # moment at which a recover hook began last
        self._undone_at = float("-inf")
        # hooks of the stage prepare whose effect the recover hooks have to undo, and since when
        self.to_undo: dict[str, float] = {}
        # latest success of each recover hook
        self._recovered_at = {hook.name: float("-inf") for hook in profile.hooks[RECOVER]}
        self._last_document: tuple[object, ...] = ()
        self._last_poll_failed = False

    def note(self, now: float, text: str) -> None:
        self.log.append((now, text))
        self.idle_at = None

    def disturbed(self, now: float, text: str) -> None:
        """Note a fault."""
        self.disturbed_at = max(self.disturbed_at, now)
        self.note(now, text)

    def daemon_is_idle(self, now: float) -> None:
        """Note that the daemon has nothing left to do; the log begins again."""
        if self.idle_at is None:
            self.idle_at = now
            self.log.clear()
            for key in [key for key, presence in self._presence.items() if presence.is_gone]:
                del self._presence[key]

    def document(self, now: float, document: EventDocument) -> None:
        """Note a good document that this host received."""
        self._last_poll_failed = False
        if document.events is not self._last_document:
            self._last_document = document.events
            shown = " ".join(f"{event.event_id}={event.status}/{event.event_type}" for event in document.events)
            if shown or self.idle_at is None:
                self.note(now, f"document: {shown}")
        elif not document.events and not self._presence:
            return
        listed = {event.key: event for event in document.events if affects(event, self.host)}
        for key, event in listed.items():
            presence = self._presence.get(key)
            if presence is None:
                self._presence[key] = Presence(event)
                continue
            presence.absences, presence.is_gone, presence.latest = 0, False, event
        for key, presence in self._presence.items():
            if key not in listed:
                presence.missing_since = presence.missing_since if presence.absences else now
                presence.absences += 1
                presence.is_gone = presence.is_gone or now - presence.missing_since >= GONE_AFTER

    def poll_failed(self) -> None:
        self._last_poll_failed = True

    def run_began(self, now: float, unit: Unit) -> None:
        """Note the begin of a hook, and check that it may begin."""
        self.note(now, f"begins {unit.title} for {unit.key}, run {unit.number}")
        if unit.stage == RECOVER:
            self._check_recovery(now, unit.name)
            self._undone_at = now
        if unit.stage == PREPARE:
            run = Run(unit.key, unit.event_type, now)
            self._running[unit.number] = run
            self._runs.setdefault(unit.name, collections.deque(maxlen=RUNS)).append(run)
            self.to_undo[unit.name] = now

    def run_ended(self, now: float, unit: Unit) -> None:
        """Note the end of a hook."""
        is_good = unit.exit_status == 0
        what = "ends" if is_good else f"fails ({unit.cause.value or unit.exit_status})"
        self.note(now, f"{what} {unit.title} for {unit.key}, run {unit.number}")
        run = self._running.pop(unit.number, None)
        if run is not None:
            run.ended, run.ok = now, is_good
        if not is_good:
            self.disturbed_at, self.failed_at = max(self.disturbed_at, now), now
            return
        self.prepared += unit.stage == PREPARE
        self.recovered += unit.stage == RECOVER
        if unit.stage == RECOVER:
            self._recovered_at[unit.name] = now
            undone_before = min(self._recovered_at.values())
            for name in [name for name, since in self.to_undo.items() if since < undone_before]:
                del self.to_undo[name]

    def boot_ended(self, now: float, text: str) -> None:
        """Note the end of a boot: what ran is interrupted."""
        self.disturbed(now, text)
        self._booted_at = now
        self._running.clear()

    def is_another_vm(self, now: float) -> None:
        """Forget everything: another VM has the name."""
        self._runs.clear()
        self._presence.clear()
        self.to_undo.clear()
        self.disturbed_at = now

    def listed(self, key: str) -> ScheduledEvent | None:
        """Return the event as the last answer of IMDS listed it for this host; None without it or without an answer."""
        presence = self._presence.get(key)
        return None if presence is None or presence.absences or self._last_poll_failed else presence.latest

    def approves(self, key: str, now: float) -> None:
        """Check an approval by the daemon of this host."""
        event = self.listed(key)
        if event is None or event.status != SCHEDULED:
            text = "the last answer of IMDS does not list it" if event is None else event.status
            self.violated("approval of a scheduled event", key, text, now)
            return
        why_not = self.unprepared(key, event.event_type, now)
        if why_not:
            self.violated("approval after preparation", key, why_not, now)

    def reports_prepared(self, key: str, now: float) -> str:
        """Return why the report that this host is prepared is wrong; "" if it is right."""
        presence = self._presence.get(key)
        return self.unprepared(key, presence.latest.event_type, now) if presence else "no document has listed it"

    def unprepared(self, key: str, kind: str | None, now: float) -> str:
        """Return why this host is not prepared for an event of this type at this moment; "" if it is."""
        for hook in self._hooks.get(PREPARE, ()):
            if hook.settings.on_failure == "ignore" or (hook.settings.types and kind not in hook.settings.types):
                continue
            runs = self._runs.get(hook.name, ())
            # a success counts for each event that is not more severe
            good = [run for run in runs if run.ok and (kind is None or counts_for(run.kind, kind))]
            reasons = [self._lost(hook, run) for run in good]
            if "" in reasons:
                continue
            own = [run for run in runs if run.key == key]
            if reasons:
                return reasons[-1]
            return (
                f"{hook.name} {'runs' if own[-1].ended > now else 'failed'}" if own else f"{hook.name} never ran for it"
            )
        return ""

    def _lost(self, hook: Hook, run: Run) -> str:
        """Return what has undone a run of a prepare hook, or ""."""
        if run.began < self._booted_at and not hook.settings.persists:
            return f"the host has rebooted after {hook.name}"
        return "a recover hook has undone it" if self._undone_at > run.began else ""

    def _check_recovery(self, now: float, hook: str) -> None:
        """A recover hook begins when documents without any event of this host have spanned the time."""
        for key, presence in self._presence.items():
            if not presence.is_gone:
                text = f"{hook} begins, {presence.absences} absences"
                self.violated("recovery after the end", key, text, now)

    def violated(self, invariant: str, key: str, text: str, now: float) -> None:
        """Add a violation, with the log since the host was idle."""
        self.violations.append(Violation(invariant, self.host, key, text, now, tuple(self.log)))
