# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The running daemon: one loop that hears from IMDS, hooks, people and systemd, and lets the engine act."""

from __future__ import annotations

import collections
import os
import select
import signal
import socket
import time
from datetime import datetime
from typing import TYPE_CHECKING, Any, Callable, Mapping, Sequence

from azure_scheduled_events.document import ScheduledEvent
from azure_scheduled_events.imds import Imds
from hook_runner import __version__, event_ids
from hook_runner.clock import ServerClock, boot_id
from hook_runner.config.directories import check_directory_permissions, metrics_obstacle
from hook_runner.config.settings import DEFAULTS, NO_APPROVAL_WARNING, ConfigError, Settings
from hook_runner.hooks.discovery import discover_hooks
from hook_runner.hooks.runs import HookRuns
from hook_runner.hooks.spawning import has_units
from hook_runner.journal.journal import Journal
from hook_runner.lifecycle.engine import Engine
from hook_runner.lifecycle.stage_plan import Hooks
from hook_runner.log import Log
from hook_runner.permissions import make_folder
from hook_runner.records import EventRecord, HookRun
from hook_runner.reporting import status
from hook_runner.reporting.imds_health import ImdsHealth
from hook_runner.reporting.in_force import InForce
from hook_runner.service.control_socket import STATUS_NAME, ControlSocket, remove_stale
from hook_runner.service.instance import is_held, lock_instance
from hook_runner.service.poller import (
    ApprovalAnswered,
    ApprovalWithheld,
    DocumentReceived,
    NameResolved,
    NameUnavailable,
    Poller,
    PollerEvent,
    PollFailed,
)
from hook_runner.service.systemd import SystemdNotifier

if TYPE_CHECKING:
    from hook_runner.reporting.metrics import Metrics

# a tick follows so soon upon one after the end of a hook: what it did may allow something else
AFTERWARDS = 0.1
# poll(2) takes whole milliseconds, and must not end before a deadline
GRAIN = 0.002
IDLE_INTERVAL = 15.0
METRICS_INTERVAL = 15.0
CLOCK_SAVE_INTERVAL = 10.0
CONNECT_TIMEOUT = 3.0
# how long the start waits for a journal that cannot be read, and how often it tries: without it
# hooks run a second time
JOURNAL_TIMEOUT = 30.0
JOURNAL_RETRY_INTERVAL = 1.0

# settings that a reload cannot change
RESTART_ONLY_SETTINGS = (
    "endpoint",
    "api_version",
    "resource_name",
    "interval",
    "timeout",
    "first_timeout",
    "journal",
    "run_directory",
    "control_group",
    "status_group",
    "metrics_file",
)


class Service:
    """Makes the parts, connects them, and runs until it is told to stop.

    Raises ConfigError, AlreadyRunning, and OSError where it cannot work at all.

    Args:
        in_force: reads the settings, and knows which are in force.
        owners: uids that may own hooks.
        log: where lines go.
        dry_run: approve nothing, whatever the settings say.
    """

    def __init__(self, in_force: InForce, owners: frozenset[int], log: Log, dry_run: bool = False) -> None:
        self._in_force, self._owners, self._log, self._dry_run = in_force, owners, log, dry_run
        self._notifier = SystemdNotifier()
        self._settings = self._load_settings()
        log.threshold = self._settings.log_level
        self._clock = ServerClock()
        self._clock_kept_at = float("-inf")
        self._health = ImdsHealth(log)
        self._metrics = self._make_metrics()
        self._metrics_at = 0.0
        self._metrics_error = ""
        self._inbox: collections.deque[PollerEvent] = collections.deque()
        self._wake_writer, self._wake_reader = socket.socketpair()
        for end in (self._wake_writer, self._wake_reader):
            end.setblocking(False)
        self._signals: collections.deque[int] = collections.deque()
        check_directory_permissions(self._settings, owners)
        make_folder(self._settings.run_directory, 0o755, owners)
        self._instance_lock = lock_instance(self._settings.run_directory)
        self._clock.restore(self._clock_file())
        self._journal = Journal.open(self._settings.journal, lambda text: log.write("warning", text))
        self._await_journal()
        self._run_directory_error = ""
        self._runs = runs = HookRuns(
            self._settings.run_directory,
            self._settings.environment,
            self._settings.output_tail,
            self._settings.kill_after,
            # a process that systemd did not start as a service is a test, or in a container
            in_units="INVOCATION_ID" in os.environ and has_units(),
        )
        self._engine = Engine(
            self._settings,
            self._hooks(),
            self._journal,
            runs,
            self._clock,
            self._send_approval,
            log,
            self._step_ended,
            boot_id().decode("ascii"),
        )
        self._controls = self._make_controls()
        self._poller = self._make_poller()

    def run(self) -> None:
        """Work until SIGTERM or SIGINT."""
        signal.set_wakeup_fd(self._wake_writer.fileno(), warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda number, _frame: self._signals.append(number))
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        self._log_startup()
        self._poller.start()
        waiting = select.poll()
        waiting.register(self._wake_reader, select.POLLIN)
        for control in self._controls:
            waiting.register(control, select.POLLIN)
        # whatever IMDS does: what waits for this service at boot must not wait for IMDS
        self._notifier.notify("READY=1")
        waiting.register(self._runs, select.POLLIN)
        has_ended = True
        try:
            while not self._handle_signals():
                pause, due = self._pause(has_ended)
                ready = {descriptor for descriptor, _event in waiting.poll(pause * 1000)}
                has_ended = due or self._runs.fileno() in ready
                self._drain_wakeups()
                self._handle_poller_events()
                for control in self._controls:
                    if control.fileno() in ready:
                        control.answer_one()
                self._check_files()
                self._adopt_late_records()
                self._engine.tick()
                self._poller.deliver_unchanged = self._engine.awaits_observation() or self._clock.is_doubtful
                self._report_state()
        finally:
            self._notifier.notify("STOPPING=1")
            for control in self._controls:
                control.close()
            self._journal.close()
        self._log.write(
            "info",
            "stopped%s"
            % ("; hooks that run go on, and are taken over at the next start" if self._engine.work.is_busy() else ""),
        )

    def _await_journal(self) -> None:
        """Wait a while for a journal that cannot be read. Nothing has begun yet, so that a signal may simply end the process."""
        until = time.monotonic() + JOURNAL_TIMEOUT
        while not self._journal.is_known and time.monotonic() < until:
            self._notifier.notify(
                f"EXTEND_TIMEOUT_USEC={int(2 * IDLE_INTERVAL * 1000000.0)}",
                "STATUS=waiting for the journal, which cannot be read",
            )
            time.sleep(JOURNAL_RETRY_INTERVAL)
            self._journal.reload()
        if not self._journal.is_known:
            self._log.write(
                "error",
                f"the journal {self._settings.journal} cannot be read, so that hooks may run again for events that were known before",
            )

    def _check_files(self) -> None:
        """Make anew what was removed under the running service: the journal, the lock, the control socket.

        Raises AlreadyRunning where another process took the lock: two would prepare and approve the
        same events.
        """
        self._journal.maintain()
        error = ""
        try:
            self._restore_run_directory()
        except (OSError, ConfigError) as reason:
            error = f"the run directory {self._settings.run_directory} cannot be made anew: {reason}"
        if error and error != self._run_directory_error:
            self._log.write("error", error)
        self._run_directory_error = error

    def _restore_run_directory(self) -> None:
        """Raises AlreadyRunning, ConfigError, OSError."""
        directory = self._settings.run_directory
        if not is_held(directory, self._instance_lock):
            check_directory_permissions(self._settings, self._owners)
            make_folder(directory, 0o755, self._owners)
            lost, self._instance_lock = self._instance_lock, lock_instance(directory)
            os.close(lost)
            self._clock_kept_at = float("-inf")
            self._log.write("warning", f"the lock in {directory} was removed: it is made anew")
        for control in self._controls:
            if control.renew():
                self._log.write("warning", f"the control socket {control.path} was removed: it is made anew")

    def _adopt_late_records(self) -> None:
        """Go on with events that a journal tells of which could not be read when the service started."""
        for record in self._journal.take_late_records():
            self._log.write("warning", f"the journal can be read again: event {record.event.event_id} is taken up")
            self._engine.take_over(record)

    def _load_settings(self, accept: Callable[[Settings], None] = lambda settings: None) -> Settings:
        settings = self._in_force.load(accept)
        return settings._replace(dry_run=True) if self._dry_run else settings

    def _refuse_defaults(self, settings: Settings) -> None:
        """A file that somebody has just emptied is no decision to prepare and approve by the defaults. Raises ConfigError."""
        if settings is DEFAULTS and self._engine.records:
            raise ConfigError(
                "it is empty or missing, and an event is in progress; write it again, or restart the service to use the defaults"
            )

    def _hooks(self, restart_needed: Sequence[str] = ()) -> Hooks:
        found, skipped = discover_hooks(self._settings.hooks_directory, self._settings, self._owners)
        for file in skipped:
            self._log.write("info", file.text)
        for hooks in found.values():
            for hook in hooks:
                if hook.problem is not None:
                    self._log.write(
                        "error",
                        f"hook {hook.stage}/{hook.name} will not be run, and counts as failed: {hook.problem}",
                    )
        self._in_force.use(self._settings, self._owners, found, restart_needed)
        return found

    def _make_metrics(self) -> Metrics | None:
        if not self._settings.metrics_file:
            return None
        obstacle = metrics_obstacle(self._settings.metrics_file, self._owners)
        if obstacle:
            self._log.write("error", f"metrics_file: nothing is written there: {obstacle}")
            return None
        from hook_runner.reporting.metrics import Metrics  # only in memory where it is used

        try:
            return Metrics(self._settings.metrics_file)
        except ImportError:
            self._log.write(
                "error",
                "metrics_file is set, but the Python library prometheus_client is not installed, so that nothing is written there",
            )
            return None

    def _make_poller(self) -> Poller:
        settings = self._settings
        imds = Imds(settings.endpoint, settings.api_version, settings.timeout, settings.first_timeout)
        # a call may be repeated once, on a connection that the server had closed
        longest = 2 * (CONNECT_TIMEOUT + settings.timeout)
        longest_first = longest + 2 * settings.first_timeout
        return Poller(
            imds,
            settings.interval,
            longest_first,
            longest,
            self._deliver,
            not settings.resource_name,
            self._clock.doubts,
        )

    def _make_controls(self) -> list[ControlSocket]:
        """The socket for those who may do all, and if a group may only look, one for that."""
        settings = self._settings
        made = [
            ControlSocket(
                settings.run_directory, self._group_id("control_group", settings.control_group), self._answer_control
            )
        ]
        status_group = self._group_id("status_group", settings.status_group)
        if status_group is not None:
            made.append(ControlSocket(settings.run_directory, status_group, self._answer_control, STATUS_NAME))
        else:
            remove_stale(settings.run_directory, STATUS_NAME)
        return made

    def _group_id(self, key: str, name: str) -> int | None:
        if not name:
            return None
        import grp  # a library that is only in memory where a group is configured

        try:
            return grp.getgrnam(name).gr_gid
        except KeyError:
            self._log.write("error", f"{key}: there is no group {name!r}; only root has its rights")
            return None

    def _deliver(self, news: PollerEvent) -> None:
        """In the poller's thread: hand something to the loop."""
        self._inbox.append(news)
        try:
            self._wake_writer.send(b"\0")
        except BlockingIOError:
            pass  # it is awake already

    def _send_approval(self, record: EventRecord, event: ScheduledEvent) -> None:
        self._poller.approve(record.id, event)

    def _step_ended(self, record: EventRecord, step: HookRun) -> None:
        if self._metrics is not None:
            try:
                self._metrics.step_ended(record, step, self._clock)
            except Exception as reason:
                self._log.write("warning", f"a hook run is missing in the metrics: {reason!r}")
            self._metrics_at = 0.0

    def _handle_signals(self) -> bool:
        while self._signals:
            number = self._signals.popleft()
            if number != signal.SIGHUP:
                return True
            self._reload()
        return False

    def _pause(self, has_ended: bool) -> tuple[float, bool]:
        """Return for how many seconds to wait if nothing happens, and whether a deadline is due then.

        has_ended: whether a hook may have ended before the last tick.
        """
        pauses = [
            IDLE_INTERVAL,
            self._journal.due(),
            max(AFTERWARDS, self._engine.pausing.seconds_left() or IDLE_INTERVAL),
        ]
        due_in = self._engine.due_in()
        if due_in is not None:
            pauses.append(max(AFTERWARDS, due_in))
        if self._notifier.watchdog is not None:
            pauses.append(self._notifier.watchdog / 4)
        if has_ended:
            pauses.append(AFTERWARDS)
        idle = min(pauses)
        deadline = self._engine.work.next_deadline()
        if deadline is None:
            return idle, False
        left = deadline - time.monotonic()
        if left <= 0:
            return AFTERWARDS, False  # what is to be done about it has to wait for something else
        return (left + GRAIN, True) if left < idle else (idle, False)

    def _drain_wakeups(self) -> None:
        try:
            while self._wake_reader.recv(4096):
                pass
        except BlockingIOError:
            pass

    def _handle_poller_events(self) -> None:
        while self._inbox:
            news = self._inbox.popleft()
            if isinstance(news, DocumentReceived):
                self._take_dates(news)
                self._health.poll_succeeded(news.document, self._clock.now())
                self._engine.observe(news.document)
                self._remember_clock(news.at)
            elif isinstance(news, PollFailed):
                self._health.poll_failed(news.error, news.outage, self._clock.now())
                self._engine.poll_failed()
            elif isinstance(news, NameResolved):
                self._engine.name_resolved(news.name, news.vm_id)
                self._log.write("info", f"this VM is {self._engine.own_name}")
            elif isinstance(news, NameUnavailable):
                self._engine.name_unavailable()
                if self._engine.own_name is None:
                    self._health.name_unavailable(news.reason)
            elif isinstance(news, ApprovalAnswered):
                self._engine.approval_answered(news.record_id, news.error)
                if self._metrics is not None:
                    self._metrics.approval_answered(news.error)
                    self._metrics_at = 0.0
            elif isinstance(news, ApprovalWithheld):
                self._engine.approval_withheld(news.record_id)

    def _take_dates(self, news: DocumentReceived) -> None:
        for date, at in news.dates:
            odd = self._clock.synchronise(date, at)
            if odd is not None:
                self._log.write("warning", odd)

    def _clock_file(self) -> str:
        return os.path.join(self._settings.run_directory, "clock")

    def _remember_clock(self, now: float) -> None:
        """While there is something to keep time for: so a process that follows this one knows it before IMDS answers."""
        if self._engine.records and now - self._clock_kept_at >= CLOCK_SAVE_INTERVAL:
            self._clock_kept_at = now
            try:
                self._clock.save(self._clock_file())
            except OSError:
                pass  # then the next process waits for an answer

    def _report_state(self) -> None:
        """Tell systemd and the metrics file how things are."""
        now = time.monotonic()
        if not self._poller.is_stuck():
            self._notifier.ping_watchdog(now)
        self._notifier.status(status.summary(self._engine, self._health))
        if self._metrics is not None and now - self._metrics_at >= METRICS_INTERVAL:
            self._metrics_at = now
            self._write_metrics(self._metrics)

    def _write_metrics(self, metrics: Metrics) -> None:
        error = ""
        try:
            self._refresh_last_poll()
            metrics.write(self._engine, self._health, self._journal.write_error is not None, self._degraded_since())
        except Exception as reason:  # the library is not ours, and what it thinks of a name must not end the service
            error = f"metrics cannot be written: {reason if isinstance(reason, OSError) else repr(reason)}"
        if error and error != self._metrics_error:
            self._log.write("warning", error)
        self._metrics_error = error

    def _refresh_last_poll(self) -> None:
        """The poller does not wake this loop for what is not new: ask it when it last saw a good document."""
        at = self._poller.last_good
        if at is not None and not self._health.error:
            self._health.unchanged_document_at(self._clock, at)

    def _degraded_since(self) -> datetime | None:
        since = self._journal.degraded_since
        return None if since is None else self._clock.at(since)

    def _answer_control(self, question: Mapping[str, Any], who: str) -> Mapping[str, Any]:
        """A line from the control socket."""
        if question.get("ask") == "status":
            self._refresh_last_poll()
            told = status.to_dict(
                self._engine, self._health, self._clock, self._journal.write_error, self._degraded_since()
            )
            pause = self._engine.pausing.current()
            paused = None if pause is None else pause.as_data()
            return {**told, "version": __version__, "configuration": self._in_force.as_data(), "paused": paused}
        if question.get("ask") in ("pause", "resume"):
            answer = self._engine.pausing.asked(question, who)
            self._engine.tick()
            return answer
        if question.get("ask") == "history":
            try:
                from hook_runner.service import history_source  # not in memory before the first question
            except ImportError as error:  # another version is being installed; the client reads the journal itself
                return {"error": str(error)}
            return history_source.page(self._journal.reader(), question)
        if question.get("ask") == "approve":
            self._journal.maintain(urgent=True)  # an approval is refused while the journal cannot be written
            asked = None
            found = self._meant(question.get("event_id"))
            if len(found) > 1:
                return {"found": False, "candidates": found}
            if found:
                force, others = question.get("force") is True, question.get("release_others") is True
                asked = self._engine.approve_manually(found[0], who, force, others)
            if asked is None:
                return {"found": False}
            return {"found": True, "accepted": asked.accepted, "text": asked.text}
        if question.get("ask") == "recover":
            found = self._meant(question.get("event_id"), is_over=True) or self._meant(question.get("event_id"))
            if len(found) > 1:
                return {"found": False, "candidates": found}
            asked = self._engine.recover_manually(found[0], who, question.get("give_up") is True) if found else None
            return (
                {"found": False} if asked is None else {"found": True, "accepted": asked.accepted, "text": asked.text}
            )
        return {"error": "unknown question"}

    def _meant(self, event_id: object, is_over: bool = False) -> list[str]:
        """The ids of the events that a question may mean: of the present ones, or of those that are over and not recovered from."""
        known = [record.event.event_id for record in self._engine.records if (record.gone_at is not None) == is_over]
        return event_ids.matching_ids(event_id, known) if isinstance(event_id, str) else []

    def _reload(self) -> None:
        self._notifier.notify("RELOADING=1")
        try:
            settings = self._load_settings(self._refuse_defaults)
        except ConfigError as error:
            self._log.write("error", f"the configuration stays as it was: {error}")
        else:
            changed = [
                name for name in RESTART_ONLY_SETTINGS if getattr(settings, name) != getattr(self._settings, name)
            ]
            if changed:
                self._log.write(
                    "warning", f"these settings take effect with the next restart only: {', '.join(changed)}"
                )
            self._settings = settings._replace(
                **{name: getattr(self._settings, name) for name in RESTART_ONLY_SETTINGS}
            )
            self._log.threshold = settings.log_level
            self._engine.reconfigure(self._settings, self._hooks(changed))
            self._log.write("info", "configuration and hooks are read again; what runs goes on")
        self._notifier.notify("READY=1")

    def _log_startup(self) -> None:
        settings = self._settings
        self._log.write("info", f"version {__version__} watches {settings.endpoint}, policy {settings.policy.name}")
        pause = self._engine.pausing.current()
        if pause is not None:
            self._log.write("warning", f"{pause.text()}; no prepare hook begins, and nothing is approved")
        if not settings.policy.may_approve():
            self._log.write("warning", NO_APPROVAL_WARNING % settings.policy.name)
        if settings.dry_run:
            self._log.write("warning", "dry run: hooks run, but nothing is approved")
