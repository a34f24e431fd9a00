# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The daemon's main loop. It receives poller events, control requests and signals, and drives the engine."""

from __future__ import annotations

import collections
import logging
import os
import select
import signal
import time

from hook_runner import __version__
from hook_runner.config.directories import check_directory_permissions
from hook_runner.config.settings import DEFAULTS, NO_APPROVAL_WARNING, RESTART_ONLY_SETTINGS, ConfigError, Settings
from hook_runner.log import set_level
from hook_runner.permissions import make_folder
from hook_runner.reporting import status
from hook_runner.service.assembly import Parts, clock_file
from hook_runner.service.instance import is_held, lock_instance
from hook_runner.service.poller import (
    ApprovalAnswered,
    ApprovalWithheld,
    DocumentReceived,
    NameResolved,
    NameUnavailable,
    PollFailed,
)

log = logging.getLogger(__name__)

# seconds until the tick after the end of a hook, which may allow another hook to start
AFTERWARDS = 0.1
# seconds: poll(2) takes whole milliseconds, and must not end before a deadline
GRAIN = 0.002
IDLE_INTERVAL = 15.0
CLOCK_SAVE_INTERVAL = 10.0


class Service:
    """The main loop. `run` closes the sockets of its parts."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._settings, self._instance_lock = parts.settings, parts.instance_lock
        self._clock, self._engine = parts.clock, parts.engine
        self._clock_saved_at = float("-inf")
        self._run_directory_error = ""
        self._signals: collections.deque[int] = collections.deque()

    def run(self) -> None:
        """Work until SIGTERM or SIGINT.

        The daemon tells systemd that it is ready before IMDS has answered. Then each round of the loop does
        this:

        1. SIGTERM or SIGINT ends the loop; SIGHUP reloads the configuration.
        2. The loop waits for the poller, a client, the end of a hook, a signal or the end of the pause
           (`_pause`).
        3. The events of the poller are handled, and then the clients that are ready.
        4. The lock and the sockets are created again if they were removed.
        5. The engine acts.
        6. The poller learns whether unchanged documents are needed, and systemd and the metrics learn the
           state.

        Hooks that run in units at the end continue.
        """
        signal.set_wakeup_fd(self._parts.inbox.wakeup_fd(), warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda number, _frame: self._signals.append(number))
        self._log_startup()
        self._parts.poller.start()
        waiting = select.poll()
        waiting.register(self._parts.inbox, select.POLLIN)
        for control in self._parts.controls:
            waiting.register(control, select.POLLIN)
        # at once: units that wait for this service at boot must not wait for IMDS
        self._parts.notifier.notify("READY=1")
        waiting.register(self._parts.runs, select.POLLIN)
        has_ended = True
        try:
            while not self._handle_signals():
                pause, due = self._pause(has_ended)
                ready = {descriptor for descriptor, _event in waiting.poll(pause * 1000)}
                has_ended = due or self._parts.runs.fileno() in ready
                self._handle_thread_events()
                for control in self._parts.controls:
                    if control.fileno() in ready:
                        control.serve()
                self._check_files()
                self._engine.tick()
                self._parts.poller.deliver_unchanged(self._awaits_observation())
                self._report_state()
        finally:
            self._parts.notifier.notify("STOPPING=1")
            for control in self._parts.controls:
                control.close()
            self._parts.runs.close()
        is_busy = self._engine.stage_runner.is_busy()
        log.info("stopped%s", "; hooks in units continue, and the next start adopts them" if is_busy else "")

    def _awaits_observation(self) -> bool:
        """Return True if the next document is needed even if it is unchanged."""
        return self._engine.awaits_observation() or self._clock.is_doubtful

    def _check_files(self) -> None:
        """Create the lock and the control socket again if they were removed.

        Raises AlreadyRunning if another process has taken the lock: two daemons would prepare and
        approve the same events.
        """
        error = ""
        try:
            self._restore_run_directory()
        except (OSError, ConfigError) as reason:
            error = f"the run directory {self._settings.run_directory} cannot be created again: {reason}"
        if error and error != self._run_directory_error:
            log.error(error)
        self._run_directory_error = error

    def _restore_run_directory(self) -> None:
        """Create the lock and the sockets again. Raises AlreadyRunning, ConfigError, OSError."""
        directory = self._settings.run_directory
        if not is_held(directory, self._instance_lock):
            check_directory_permissions(self._settings, self._parts.owners)
            make_folder(directory, 0o755, self._parts.owners)
            lost, self._instance_lock = self._instance_lock, lock_instance(directory)
            os.close(lost)
            self._clock_saved_at = float("-inf")
            log.warning("the lock in %s was removed: it is created again", directory)
        for control in self._parts.controls:
            if control.renew():
                log.warning("the control socket %s was removed: it is created again", control.path)

    def _refuse_defaults(self, settings: Settings) -> None:
        """Raise ConfigError if the configuration was emptied during an event, which is probably a mistake."""
        if settings is DEFAULTS and self._engine.records:
            raise ConfigError(
                "it is empty or missing, and an event is in progress; write it again, or restart the service to use"
                " the defaults"
            )

    def _handle_signals(self) -> bool:
        while self._signals:
            number = self._signals.popleft()
            if number != signal.SIGHUP:
                return True
            self._reload()
        return False

    def _pause(self, has_ended: bool) -> tuple[float, bool]:
        """Return how many seconds to wait, and whether a deadline is due then.

        `has_ended` is whether a hook may have ended before the last tick.

        1. The wait is at most IDLE_INTERVAL. It ends earlier for the end of an operator's pause, an event
           that depends on the time, and the watchdog; and after AFTERWARDS if a hook may have ended.
        2. The deadline of a hook that comes before that is the end of the wait. Only then the second value is
           True.
        3. If a deadline has passed already, the wait is AFTERWARDS.
        """
        pauses = [
            IDLE_INTERVAL,
            max(AFTERWARDS, self._engine.pausing.seconds_left() or IDLE_INTERVAL),
        ]
        due_in = self._engine.due_in()
        if due_in is not None:
            pauses.append(max(AFTERWARDS, due_in))
        if self._parts.notifier.watchdog is not None:
            pauses.append(self._parts.notifier.watchdog / 4)
        if has_ended:
            pauses.append(AFTERWARDS)
        idle = min(pauses)
        deadline = self._engine.stage_runner.next_deadline()
        if deadline is None:
            return idle, False
        left = deadline - time.monotonic()
        if left <= 0:
            return AFTERWARDS, False  # the deadline has passed, and its action waits for something else
        return (left + GRAIN, True) if left < idle else (idle, False)

    def _handle_thread_events(self) -> None:
        for event in self._parts.inbox.take():
            if isinstance(event, DocumentReceived):
                self._document_received(event)
            elif isinstance(event, PollFailed):
                self._parts.health.poll_failed(event.error, event.outage, self._clock.now())
                self._engine.poll_failed()
            elif isinstance(event, NameResolved):
                self._engine.name_resolved(event.name, event.vm_id)
                log.info("this VM is %s", self._engine.own_name)
            elif isinstance(event, NameUnavailable):
                self._engine.name_unavailable()
                if self._engine.own_name is None:
                    self._parts.health.name_unavailable(event.reason)
            elif isinstance(event, ApprovalAnswered):
                self._engine.approval_answered(event.record_id, event.error)
                self._parts.metrics.approval_answered(event.error)
            elif isinstance(event, ApprovalWithheld):
                self._engine.approval_withheld(event.record_id)

    def _document_received(self, event: DocumentReceived) -> None:
        self._take_dates(event)
        self._parts.health.poll_succeeded(event.document, self._clock.now())
        self._engine.observe(event.document)
        self._save_clock(event.at)

    def _take_dates(self, event: DocumentReceived) -> None:
        for date, at in event.dates:
            odd = self._clock.synchronise(date, at)
            if odd is not None:
                log.warning(odd)

    def _save_clock(self, now: float) -> None:
        """Save the server's clock during an event: the next process knows the time before IMDS answers."""
        if self._engine.records and now - self._clock_saved_at >= CLOCK_SAVE_INTERVAL:
            self._clock_saved_at = now
            try:
                self._clock.save(clock_file(self._settings))
            except OSError:
                pass  # the next process waits for an answer

    def _report_state(self) -> None:
        """Report the state to systemd and in the metrics."""
        now = time.monotonic()
        if not self._parts.poller.is_stuck():
            self._parts.notifier.ping_watchdog(now)
        self._parts.notifier.status(status.summary(self._engine, self._parts.health))
        metrics, requests = self._parts.metrics, self._parts.requests
        if metrics.is_due(now):
            requests.refresh_last_poll()
            metrics.update(now, self._engine, self._parts.health, self._parts.store.failing_since)

    def _reload(self) -> None:
        """Read the configuration and the hooks again; the daemon tells systemd when this begins and ends.

        1. A configuration that is not usable, or was emptied during an event, changes nothing.
        2. RESTART_ONLY_SETTINGS keep their values; the log names those that differ.
        3. All other settings and the hooks are in force from now on. Hooks that run continue.
        """
        self._parts.notifier.notify("RELOADING=1")
        try:
            settings = self._parts.configuration.load(self._refuse_defaults)
        except ConfigError as error:
            log.error("the configuration is not changed: %s", error)
        else:
            changed = [
                name for name in RESTART_ONLY_SETTINGS if getattr(settings, name) != getattr(self._settings, name)
            ]
            if changed:
                log.warning("these settings take effect with the next restart only: %s", ", ".join(changed))
            self._settings = settings._replace(
                **{name: getattr(self._settings, name) for name in RESTART_ONLY_SETTINGS}
            )
            set_level(settings.log_level)
            self._engine.reconfigure(self._settings, self._parts.configuration.hooks(self._settings, changed))
            log.info("configuration and hooks are read again; running hooks continue")
            self._log_warnings()
        self._parts.notifier.notify("READY=1")

    def _log_warnings(self) -> None:
        for text in self._settings.warnings():
            log.warning(text)

    def _log_startup(self) -> None:
        settings = self._settings
        log.info("version %s watches %s, policy %s", __version__, settings.endpoint, settings.policy.name)
        pause = self._engine.pausing.current()
        if pause is not None:
            log.warning("%s; no prepare hook begins, and nothing is approved", pause.text())
        if not settings.policy.may_approve():
            log.warning(NO_APPROVAL_WARNING, settings.policy.name)
        self._log_warnings()
        if settings.dry_run:
            log.warning("dry run: hooks run, but nothing is approved")
