# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The daemon: how its parts are connected, and its main loop, which acts on what the poller and clients send."""

from __future__ import annotations

import logging
import os
import select
import signal
import time

from azure_scheduled_events.boot import boot_id
from azure_scheduled_events.imds import Imds
from hook_runner import __version__
from hook_runner.clock import ServerClock
from hook_runner.config.listing import changed_keys
from hook_runner.config.settings import ConfigError
from hook_runner.hooks.runs import HookRuns
from hook_runner.hooks.systemd import Systemd
from hook_runner.imds_health import ImdsHealth
from hook_runner.record_store import RecordStore
from hook_runner.reporting import status
from hook_runner.reporting.metrics import Metrics, open_metrics
from hook_runner.runner import Runner
from hook_runner.service.configuration_source import Configuration
from hook_runner.service.control_requests import ControlRequests
from hook_runner.service.inbox import Inbox
from hook_runner.service.poller import Poller
from hook_runner.service.run_directory import RunDirectory
from hook_runner.service.systemd import SystemdNotifier

log = logging.getLogger(__name__)

# seconds: poll(2) takes whole milliseconds, and must not end before a deadline
GRAIN = 0.002
IDLE_INTERVAL = 15.0


def assemble(configuration: Configuration) -> Service:
    """Return a daemon that is ready to poll: it has the lock, and its records and sockets.

    Raises:
        ConfigError: the configuration is not usable.
        AlreadyRunning: another daemon works in the same directory.
        OSError: a folder or a socket cannot be created.
    """
    notifier = SystemdNotifier()
    os.environ.pop("NOTIFY_SOCKET", None)  # systemctl would send its errors there
    hooks = configuration.load()
    settings = configuration.settings
    directory = RunDirectory(settings)
    directory.lock()
    clock, health, inbox = ServerClock(), ImdsHealth(), Inbox()
    metrics = open_metrics(settings)
    systemd = Systemd()
    # a process that systemd did not start as a service is a test, or in a container
    has_units = "INVOCATION_ID" in os.environ and systemd.has_units()
    boot = systemd.boot() if has_units else boot_id()
    store = RecordStore(settings.state_directory, boot, log.warning, clock.now)
    store.load()
    runs = HookRuns(settings.run_directory, systemd=systemd if has_units else None)
    imds = Imds(settings.endpoint, settings.api_version, settings.timeout, settings.first_timeout)
    poller = Poller(imds, settings, clock, health, inbox)
    more = {} if metrics is None else {"hook_ended": metrics.hook_ended}
    runner = Runner(settings, hooks, store, runs, clock, health, poller.approve, poller.withdraw, **more)
    directory.open_sockets(ControlRequests(runner, configuration))
    return Service(configuration, directory, runner, poller, inbox, metrics, notifier)


class Service:
    """The main loop."""

    def __init__(
        self,
        configuration: Configuration,
        directory: RunDirectory,
        runner: Runner,
        poller: Poller,
        inbox: Inbox,
        metrics: Metrics | None,
        notifier: SystemdNotifier,
    ) -> None:
        self._configuration, self._directory, self._runner = configuration, directory, runner
        self._poller, self._inbox, self._metrics, self._notifier = poller, inbox, metrics, notifier
        self._is_over = self._has_to_reload = False

    def run(self) -> None:
        """Work until SIGTERM or SIGINT.

        The daemon notifies systemd that it is ready before IMDS has answered: units that wait for this service at boot
        must not wait for IMDS. Then each round of the loop does this:

        1. SIGTERM or SIGINT ends the loop; SIGHUP reloads the configuration.
        2. The loop waits for the poller, a client, the end of a hook, a signal, or what depends on the time.
        3. The messages of the poller are handled, and then the clients that are ready.
        4. The lock and the sockets are created again if they were removed.
        5. The runner acts.
        6. The poller learns whether unchanged documents are needed and a name is known, and systemd and the metrics
           learn the state.

        Hooks that run in units at the end continue.
        """
        signal.set_wakeup_fd(self._inbox.wakeup_fd(), warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda number, _frame: self._signal_received(number))
        self._log_startup()
        self._poller.start()
        waiting = select.poll()
        waiting.register(self._inbox, select.POLLIN)
        waiting.register(self._runner.runs, select.POLLIN)
        for control in self._directory.sockets:
            waiting.register(control, select.POLLIN)
        self._notifier.notify("READY=1")
        try:
            while not self._is_over:
                if self._has_to_reload:
                    self._reload()
                waiting.poll(self._longest_wait() * 1000)
                for message in self._inbox.take():
                    message(self._runner)
                self._directory.serve()
                self._directory.restore()
                self._runner.tick()
                self._poller.deliver_unchanged(self._runner.awaits_document)
                self._poller.knows_name = bool(self._runner.host.own_name)
                self._report_state()
        finally:
            self._notifier.notify("STOPPING=1")
            self._directory.close()
            self._runner.runs.close(self._configuration.settings.kill_after)
        is_busy = self._runner.records.open_run is not None
        log.info("stopped%s", "; a hook in a unit continues, and the next start adopts it" if is_busy else "")

    def _signal_received(self, number: int) -> None:
        if number == signal.SIGHUP:
            self._has_to_reload = True
        else:
            self._is_over = True

    def _longest_wait(self) -> float:
        """Return how many seconds the loop may wait; the end of the time requires a round of it."""
        waits = [IDLE_INTERVAL]
        due_in, check_at = self._runner.machine.due_in(self._runner.now), self._runner.runs.next_check_in()
        if due_in is not None:
            waits.append(due_in)
        if check_at is not None:
            waits.append(max(0.0, check_at - time.monotonic()) + GRAIN)
        if self._notifier.watchdog is not None:
            waits.append(self._notifier.watchdog / 4)
        return min(waits)

    def _report_state(self) -> None:
        """Report the state to systemd and in the metrics."""
        now = time.monotonic()
        if not self._poller.is_stuck():
            self._notifier.ping_watchdog(now)
        self._notifier.status(status.summary(self._runner))
        if self._metrics is not None:
            self._metrics.update(now, self._runner)

    def _reload(self) -> None:
        """Read the configuration and the hooks again, and use them unless the configuration is refused.

        Systemd learns when this begins and ends. Hooks that run continue.
        """
        self._has_to_reload = False
        self._notifier.notify("RELOADING=1")
        try:
            # it was emptied during an event, which is probably a mistake
            hooks = self._configuration.load(may_be_empty=not self._runner.has_events)
        except ConfigError as error:
            log.error("the configuration is not changed: %s", error)
        else:
            self._runner.reconfigure(self._configuration.settings, hooks)
            log.info("configuration and hooks are read again; running hooks continue")
            self._log_warnings()
        self._notifier.notify("READY=1")

    def _log_warnings(self) -> None:
        for text in self._configuration.settings.warnings():
            log.warning(text)

    def _log_startup(self) -> None:
        settings = self._configuration.settings
        log.info("version %s watches %s, policy %s", __version__, settings.endpoint, settings.policy.name)
        log.info("settings that differ from the defaults: %s", changed_keys(settings) or "none")
        pause = self._runner.records.state.pause
        if pause is not None:
            log.warning("%s; no prepare hook begins, and nothing is approved", pause)
        self._log_warnings()
