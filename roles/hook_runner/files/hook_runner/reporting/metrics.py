# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Metrics of the daemon, kept by prometheus_client: for a file, and for an HTTP server. No error in them ends it."""

from __future__ import annotations

import collections
import logging
import os
from typing import Any, Iterable, Mapping, NamedTuple

from azure_scheduled_events import durable_file
from azure_scheduled_events.printable import printable
from hook_runner.config.settings import Settings
from hook_runner.hooks.discovery import Hooks
from hook_runner.maintenance.machine import PHASES
from hook_runner.maintenance.record import EventRecord, HookRun
from hook_runner.permissions import replacement_problem
from hook_runner.records import ACCEPTED, LOST, OPEN_STATES, PREPARE, RUN_STATES
from hook_runner.reporting import metrics_server
from hook_runner.reporting.history import affects_this_vm
from hook_runner.reporting.status import not_recovered
from hook_runner.runner import Runner

log = logging.getLogger(__name__)

# seconds between two updates while nothing is counted
METRICS_INTERVAL = 15.0
PREFIX = "azure_scheduled_events_"
# seconds; hooks take from a moment to a quarter of an hour
BUCKETS = (0.1, 0.5, 1, 5, 10, 30, 60, 120, 300, 600, 900)
# the usual errors of requests to IMDS, which are counted from 0 on; others appear with their first occurrence
ERRORS = (*(f"status-{status}" for status in (400, 403, 404, 410, 429, 500, 503)), "unreachable", "unreadable")
# a run is lost after it has been counted
RESULTS = tuple(state for state in RUN_STATES if state not in (*OPEN_STATES, LOST))


class Definition(NamedTuple):
    """One metric: the class of prometheus_client, its help, and the names of its labels."""

    kind: str
    text: str
    labels: tuple[str, ...] = ()


# the metrics by name, without PREFIX and without the suffix _total of counters
METRICS: Mapping[str, Definition] = {
    "events": Definition("Gauge", "Events that are not gone", ("type", "affects_this_vm")),
    "maintenance": Definition("Gauge", "1 for the phase of the open maintenance", ("phase",)),
    "last_good_poll_timestamp_seconds": Definition("Gauge", "When IMDS gave its last good answer, in Unix time"),
    "imds_ok": Definition("Gauge", "1 while the latest poll brought a good answer"),
    "imds_errors": Definition("Counter", "Polls without a good answer", ("kind",)),
    "hook_duration_seconds": Definition("Histogram", "How long hooks ran", ("stage", "hook")),
    "hook_runs": Definition("Counter", "Hook runs by result", ("stage", "hook", "result")),
    "prepare_end_seconds_left": Definition("Gauge", "Seconds that were left when the latest preparation ended"),
    "records_degraded": Definition("Gauge", "1 while records cannot be written"),
    "approval_answers": Definition("Counter", "Answers of IMDS to approvals", ("result",)),
    "not_recovered": Definition("Gauge", "1 while a recover hook has failed and has not succeeded since"),
    "paused": Definition("Gauge", "1 while an operator has paused the daemon"),
    "records_degraded_since_timestamp_seconds": Definition(
        "Gauge", "Since when records cannot be written, in Unix time; 0 while they can"
    ),
}


class Metrics:
    """Keeps metrics, and writes them to the file `path` unless this is "". No error of the library is raised.

    Raises ImportError if prometheus_client is not installed.
    """

    def __init__(self, path: str = "") -> None:
        import prometheus_client  # only hosts with metrics need the library

        self._path = path
        self._client: Any = prometheus_client
        self._registry = prometheus_client.CollectorRegistry()
        self._made: dict[str, Any] = {}
        # the events, and the answers of IMDS by the name of their metric, that the metrics show
        self._events: collections.Counter[tuple[str, str]] = collections.Counter()
        self._answers: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
        self._hooks: Hooks | None = None
        self._updated_at = float("-inf")
        self._error = ""
        self._metric("prepare_end_seconds_left")

    def hook_ended(self, run: HookRun, record: EventRecord | None) -> None:
        """Count a hook run that has ended; `record` is its event, if that is known."""
        self._updated_at = float("-inf")
        try:
            self._metric("hook_runs", run.stage, printable(run.name), run.state).inc()
            if run.ended is not None:
                seconds = max(0.0, (run.ended - run.began).total_seconds())
                self._metric("hook_duration_seconds", run.stage, printable(run.name)).observe(seconds)
                if run.stage == PREPARE and record is not None:
                    self._metric("prepare_end_seconds_left").set(record.event.seconds_left(run.ended))
        except Exception as reason:
            log.warning("a hook run is missing in the metrics: %r", reason)

    def update(self, now: float, runner: Runner) -> None:
        """Bring all up to date after METRICS_INTERVAL, or at once if a hook has ended; `now`: monotonic seconds.

        The log gets a line when an error begins.
        """
        if now - self._updated_at < METRICS_INTERVAL:
            return
        self._updated_at = now
        error = ""
        try:
            self._show(runner)
            if self._path:
                # node_exporter is another user
                durable_file.write(self._path, self._client.generate_latest(self._registry), mode=0o644)
        except Exception as reason:  # the library is another project's; its check of a name must not end the daemon
            error = f"metrics cannot be written: {reason if isinstance(reason, OSError) else repr(reason)}"
        if error and error != self._error:
            log.warning(error)
        self._error = error

    def _show(self, runner: Runner) -> None:
        self._begin_at_zero(runner.host.hooks)
        records, since, health = runner.records, runner.store.failing_since, runner.health
        phase = "" if records.maintenance is None else runner.machine.phase
        for each in PHASES:
            self._metric("maintenance", each).set(each == phase)
        self._metric("not_recovered").set(bool(not_recovered(runner)))
        self._metric("paused").set(records.state.pause is not None)
        self._metric("imds_ok").set(health.is_ok)
        if health.last_good is not None:
            self._metric("last_good_poll_timestamp_seconds").set(health.last_good.timestamp())
        self._metric("records_degraded").set(since is not None)
        self._metric("records_degraded_since_timestamp_seconds").set(since.timestamp() if since else 0)
        self._show_answers("imds_errors", ERRORS, health.errors)
        self._show_answers("approval_answers", (ACCEPTED, *ERRORS), health.approvals)
        # texts of IMDS may be invalid UTF-8
        events = collections.Counter(
            (printable(record.event.event_type), str(affects_this_vm(record, runner.host.own_name)).lower())
            for record in records.known
        )
        for series in self._events.keys() - events.keys():
            self._metric("events").remove(*series)
        for series, count in events.items():
            self._metric("events", *series).set(count)
        self._events = events

    def _show_answers(self, name: str, usual: Iterable[str], counted: collections.Counter[str]) -> None:
        for kind in sorted({*usual, *counted}):
            self._metric(name, kind).inc(counted[kind] - self._answers[name][kind])
        self._answers[name] = counted.copy()

    def _metric(self, name: str, *labels: str) -> Any:
        """Return a metric, or its series with these labels; what is returned for the first time begins at 0."""
        if name not in self._made:
            kind, text, names = METRICS[name]
            options = {"buckets": BUCKETS} if kind == "Histogram" else {}
            self._made[name] = getattr(self._client, kind)(
                PREFIX + name, text, names, registry=self._registry, **options
            )
        return self._made[name].labels(*labels) if labels else self._made[name]

    def _begin_at_zero(self, hooks: Hooks) -> None:
        """Show each result of each hook as 0: Prometheus does not see the increase to the first value of a series."""
        if self._hooks is hooks:
            return
        self._hooks = hooks
        for stage, name in {(stage, printable(hook.name)) for stage, some in hooks.items() for hook in some}:
            self._metric("hook_duration_seconds", stage, name)
            for result in RESULTS:
                self._metric("hook_runs", stage, name, result)

    def app(self) -> Any:
        """Return the WSGI application that answers with all metrics."""
        return self._client.make_wsgi_app(self._registry)


def open_metrics(settings: Settings) -> Metrics | None:
    """Return the metrics, whose HTTP server answers already; None without any. The log gets a line for an error."""
    path, address = settings.metrics_file, settings.metrics_address
    obstacle = replacement_problem(os.path.dirname(path)) if path else None
    if obstacle is not None:
        log.error("metrics_file: nothing is written: %s", obstacle)
        path = ""
    if not path and not address:
        return None
    try:
        metrics = Metrics(path)
        if address:
            metrics_server.serve(address, metrics.app())
    except ImportError:
        log.error(
            "metrics: the Python library prometheus_client is not installed, and there are no metrics;"
            " install it, or remove metrics_file and metrics_address"
        )
        return None
    except OSError as error:
        log.error("metrics_address: %s is not available: %s; use another port", address, error.strerror)
        return metrics if path else None
    return metrics
