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
from fleet_simulation.simulated_runs import HostProcesses, Process
from hook_runner.hooks.discovery import Hook
from hook_runner.lifecycle.hook_pairs import partner
from hook_runner.records import PREPARE, RECOVER

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
    """Whether the documents that this host received list an event for it, and how the last of them listed it.

    An event that comes back after it was gone is a new one since then; what ran for the earlier one does not count.
    """

    __slots__ = ("absences", "came_back_at", "first_seen", "is_gone", "latest", "missing_since")

    def __init__(self, now: float, latest: ScheduledEvent) -> None:
        self.absences = 0
        self.missing_since = 0.0
        self.is_gone = False
        self.first_seen = now
        self.came_back_at = float("-inf")
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
        self._settings = profile.settings
        self._booted_at = float("-inf")
        self._presence: dict[str, Presence] = {}
        self._runs: dict[str, collections.deque[Run]] = {}
        self._running: dict[int, Run] = {}
        # moment at which a recover hook began last
        self._undone_at: dict[str, float] = {}
        # hooks of the stage prepare whose effect a later recover hook has to undo, and since when
        self.to_undo: dict[str, float] = {}
        # latest success and type of its event by (key, occurrence, stage, hook), and what permits another one
        self._succeeded: dict[tuple[str, int, str, str], tuple[float | None, str]] = {}
        self._permitted: dict[str, float] = {}
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
                self._presence[key] = Presence(now, event)
                continue
            if presence.is_gone:
                presence.came_back_at = now
            presence.absences, presence.is_gone, presence.latest = 0, False, event
        for key, presence in self._presence.items():
            if key not in listed:
                presence.missing_since = presence.missing_since if presence.absences else now
                presence.absences += 1
                presence.is_gone = presence.is_gone or now - presence.missing_since >= GONE_AFTER

    def poll_failed(self) -> None:
        self._last_poll_failed = True

    def run_began(self, now: float, process: Process) -> None:
        """Note the begin of a hook, and check that it may begin."""
        identity = process.identity
        self.note(now, f"begins {identity.stage}/{identity.hook} for {identity.key}, run {process.number}")
        if identity.stage == RECOVER:
            self._check_recovery(now, identity.key, identity.hook)
            self._undone_at[identity.hook] = now
        else:
            self._permitted[identity.key] = now
        if identity.stage == PREPARE:
            seen = self._presence.get(identity.key)
            run = Run(identity.key, seen.latest.event_type if seen is not None else "", now)
            self._running[process.number] = run
            self._runs.setdefault(identity.hook, collections.deque(maxlen=RUNS)).append(run)
            self.to_undo[identity.hook] = now

    def run_ended(self, now: float, process: Process) -> None:
        """Note the end of a hook, and check that it has not succeeded before for the same occurrence."""
        identity, is_good = process.identity, process.exit_status == 0
        what = "ends" if is_good else f"fails ({process.cause.value or process.exit_status})"
        self.note(now, f"{what} {identity.stage}/{identity.hook} for {identity.key}, run {process.number}")
        run = self._running.pop(process.number, None)
        if run is not None:
            run.ended, run.ok = now, is_good
        if not is_good:
            self.disturbed_at, self.failed_at = max(self.disturbed_at, now), now
            return
        self.prepared += identity.stage == PREPARE
        self.recovered += identity.stage == RECOVER
        self._check_once(now, process, run)
        if identity.stage == RECOVER:
            for name in [name for name, since in self.to_undo.items() if since < process.began_at]:
                if self._undoes(identity.hook, name) == "pair":
                    del self.to_undo[name]

    def boot_ended(self, now: float, text: str, processes: HostProcesses) -> None:
        """Note the end of a boot: what ran is interrupted, and results that no daemon took are lost."""
        self.disturbed(now, text)
        self._booted_at = now
        self._running.clear()
        for process in processes.by_number.values():
            self._permitted[process.identity.key] = now

    def is_another_vm(self, now: float) -> None:
        """Forget everything: another VM has the name."""
        self._runs.clear()
        self._presence.clear()
        self._succeeded.clear()
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
        seen = self._presence.get(key)
        for hook in self._hooks.get(PREPARE, ()):
            if hook.settings.on_failure == "ignore" or (hook.settings.types and kind not in hook.settings.types):
                continue
            runs = self._runs.get(hook.name, ())
            since = seen.first_seen if seen is not None else now
            # a run for another event counts for one that waited for it
            good = [
                run
                for run in runs
                if run.ok and (run.key == key or run.ended >= since) and (kind is None or counts_for(run.kind, kind))
            ]
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
        for name, undone_at in self._undone_at.items():
            if undone_at > run.began and self._undoes(name, hook.name):
                return f"{RECOVER}/{name} has undone {hook.name}"
        return ""

    def _check_recovery(self, now: float, key: str, hook: str) -> None:
        """A recover hook begins after documents without the event that span the time, and while no other holds it."""
        presence = self._presence.get(key)
        if presence is not None and not presence.is_gone:
            self.violated("recovery after the end", key, f"{hook} begins, {presence.absences} absences", now)
        for other, seen in self._presence.items():
            if other == key or seen.absences or seen.is_gone:
                continue
            for name, runs in self._runs.items():
                lost_at = max((at for each, at in self._undone_at.items() if self._undoes(each, name)), default=-1.0)
                if not self._settings.hook(PREPARE, name).persists:
                    lost_at = max(lost_at, self._booted_at)
                lost_at = max(lost_at, seen.came_back_at)
                if self._undoes(hook, name) and any(run.key == other and run.began > lost_at for run in runs):
                    self.violated("recovery waits for others", key, f"{hook} begins; {name} ran for {other}", now)
                    return

    def _check_once(self, now: float, process: Process, run: Run | None) -> None:
        identity = process.identity
        index = (identity.key, identity.life, identity.stage, identity.hook)
        before, kind_before = self._succeeded.get(index, (None, ""))
        self._succeeded[index] = (now, run.kind if run is not None else "")
        if before is None:
            return
        if identity.stage == RECOVER:
            excused = self._permitted.get(identity.key, -1.0) >= before
        else:
            # a recover hook that ran while the event was missing undoes a part; all hooks run again
            undone = max(self._undone_at.values(), default=-1.0)
            persists = self._settings.hook(identity.stage, identity.hook).persists
            lost = self._permitted.get(identity.key, -1.0) == self._booted_at
            worse = run is not None and not counts_for(kind_before, run.kind)
            excused = worse or undone >= before or (self._booted_at >= before and (lost or not persists))
        if not excused:
            text = f"{identity.hook} succeeded {now - before:.1f} s before"
            self.violated(f"{identity.stage} once", identity.key, text, now)

    def _undoes(self, recover_hook: str, prepare_hook: str) -> str:
        """Return "pair", "any" (a recover hook without a partner), or "" if it does not undo it."""
        with_it = partner(self._hooks, RECOVER, recover_hook)
        if with_it is None:
            return "any"
        return "pair" if with_it == prepare_hook else ""

    def violated(self, invariant: str, key: str, text: str, now: float) -> None:
        """Add a violation, with the log since the host was idle."""
        self.violations.append(Violation(invariant, self.host, key, text, now, tuple(self.log)))
