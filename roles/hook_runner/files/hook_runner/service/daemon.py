# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The daemon's main loop. It receives poller events, control requests and signals, and drives the runner."""

from __future__ import annotations

import collections
import logging
import os
import select
import signal
import time

from hook_runner import __version__
from hook_runner.config.directories import check_directory_permissions
from hook_runner.config.listing import changed_keys
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

# seconds: poll(2) takes whole milliseconds, and must not end before a deadline
GRAIN = 0.002
IDLE_INTERVAL = 15.0
CLOCK_SAVE_INTERVAL = 10.0


class Service:
    """The main loop. `run` closes the sockets of its parts."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._settings, self._instance_lock = parts.settings, parts.instance_lock
        self._clock, self._runner = parts.clock, parts.runner
        self._clock_saved_at = float("-inf")
        self._run_directory_error = ""
        self._signals: collections.deque[int] = collections.deque()

    def run(self) -> None:
        """Work until SIGTERM or SIGINT.

        The daemon tells systemd that it is ready before IMDS has answered. Then each round of the loop does
        this:

        1. SIGTERM or SIGINT ends the loop; SIGHUP reloads the configuration.
        2. The loop waits for the poller, a client, the end of a hook, a signal, or what depends on the time.
        3. The events of the poller are handled, and then the clients that are ready.
        4. The lock and the sockets are created again if they were removed.
        5. The runner acts.
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
        try:
            while not self._handle_signals():
                ready = {descriptor for descriptor, _event in waiting.poll(self._longest_wait() * 1000)}
                self._handle_thread_events()
                for control in self._parts.controls:
                    if control.fileno() in ready:
                        control.serve()
                self._check_files()
                self._runner.tick()
                self._parts.poller.deliver_unchanged(self._awaits_observation())
                self._report_state()
        finally:
            self._parts.notifier.notify("STOPPING=1")
            for control in self._parts.controls:
                control.close()
            self._parts.runs.close()
        is_busy = self._runner.is_busy
        log.info("stopped%s", "; a hook in a unit continues, and the next start adopts it" if is_busy else "")

    def _awaits_observation(self) -> bool:
        """Return True if the next document is needed even if it is unchanged."""
        return self._runner.awaits_document or self._clock.is_doubtful

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
        if settings is DEFAULTS and self._runner.has_events:
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

    def _longest_wait(self) -> float:
        """Return how many seconds the loop may wait; the end of the time requires a round of it."""
        waits = [IDLE_INTERVAL]
        due_in, check_at = self._runner.due_in(), self._runner.next_check_in()
        if due_in is not None:
            waits.append(due_in)
        if check_at is not None:
            waits.append(max(0.0, check_at - time.monotonic()) + GRAIN)
        if self._parts.notifier.watchdog is not None:
            waits.append(self._parts.notifier.watchdog / 4)
        return min(waits)

    def _handle_thread_events(self) -> None:
        for event in self._parts.inbox.take():
            if isinstance(event, DocumentReceived):
                self._document_received(event)
            elif isinstance(event, PollFailed):
                self._parts.health.poll_failed(event.error, event.outage, self._clock.now())
                self._runner.poll_failed()
            elif isinstance(event, NameResolved):
                self._runner.name_resolved(event.name, event.vm_id)
                log.info("this VM is %s", self._runner.own_name)
            elif isinstance(event, NameUnavailable):
                self._runner.name_unavailable()
                if not self._runner.own_name:
                    self._parts.health.name_unavailable(event.reason)
            elif isinstance(event, ApprovalAnswered):
                self._runner.approval_answered(event.key, event.error)
                self._parts.metrics.approval_answered(event.error)
            elif isinstance(event, ApprovalWithheld):
                self._runner.approval_withheld(event.key)

    def _document_received(self, event: DocumentReceived) -> None:
        self._take_dates(event)
        self._parts.health.poll_succeeded(event.document, self._clock.now())
        self._runner.observe(event.document)
        self._save_clock(event.at)

    def _take_dates(self, event: DocumentReceived) -> None:
        for date, at in event.dates:
            odd = self._clock.synchronise(date, at)
            if odd is not None:
                log.warning(odd)

    def _save_clock(self, now: float) -> None:
        """Save the server's clock during an event: the next process knows the time before IMDS answers."""
        if self._runner.has_events and now - self._clock_saved_at >= CLOCK_SAVE_INTERVAL:
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
        self._parts.notifier.status(status.summary(self._runner, self._parts.health))
        metrics, requests = self._parts.metrics, self._parts.requests
        if metrics.is_due(now):
            requests.refresh_last_poll()
            metrics.update(now, self._runner, self._parts.health)

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
            self._runner.reconfigure(self._settings, self._parts.configuration.hooks(self._settings, changed))
            log.info("configuration and hooks are read again; running hooks continue")
            self._log_warnings()
        self._parts.notifier.notify("READY=1")

    def _log_warnings(self) -> None:
        for text in self._settings.warnings:
            log.warning(text)

    def _log_startup(self) -> None:
        settings = self._settings
        log.info("version %s watches %s, policy %s", __version__, settings.endpoint, settings.policy.name)
        log.info("settings that differ from the defaults: %s", changed_keys(settings) or "none")
        pause = self._runner.records.state.pause
        if pause is not None:
            log.warning("%s; no prepare hook begins, and nothing is approved", pause)
        if not settings.policy.may_approve():
            log.warning(NO_APPROVAL_WARNING, settings.policy.name)
        self._log_warnings()
        if settings.dry_run:
            log.warning("dry run: hooks run, but nothing is approved")
