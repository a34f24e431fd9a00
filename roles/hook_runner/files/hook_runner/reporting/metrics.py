# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Metrics of the daemon, kept by prometheus_client: for a file, and for an HTTP server. No error in them ends it."""

from __future__ import annotations

import collections
import logging
import os
from typing import Any, Iterator

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

# seconds between two updates while no hook ends
METRICS_INTERVAL = 15.0
PREFIX = "azure_scheduled_events_"
# seconds; hooks take from a moment to a quarter of an hour
BUCKETS = (0.1, 0.5, 1, 5, 10, 30, 60, 120, 300, 600, 900)
# the usual errors of requests to IMDS, which are counted from 0 on; others appear with their first occurrence
ERRORS = (*(f"status-{status}" for status in (400, 403, 404, 410, 429, 500, 503)), "unreachable", "unreadable")
# a run is lost after it has been counted
RESULTS = tuple(state for state in RUN_STATES if state not in (*OPEN_STATES, LOST))


class Metrics:
    """Keeps metrics, and writes them to the file `path` unless this is "". No error of the library is raised.

    Raises ImportError if prometheus_client is not installed.
    """

    def __init__(self, path: str = "") -> None:
        import prometheus_client.core  # only hosts with metrics need the library

        self._path = path
        self._client: Any = prometheus_client
        # a request for single metrics needs the names of those that `collect` returns when it is registered
        self._registry = prometheus_client.CollectorRegistry(auto_describe=True)
        labels = ("stage", "hook")
        self._durations = prometheus_client.Histogram(
            PREFIX + "hook_duration_seconds", "How long hooks ran", labels, registry=self._registry, buckets=BUCKETS
        )
        self._runs = prometheus_client.Counter(
            PREFIX + "hook_runs", "Hook runs by result", (*labels, "result"), registry=self._registry
        )
        self._seconds_left = prometheus_client.Gauge(
            PREFIX + "prepare_end_seconds_left",
            "Seconds that were left when the latest preparation ended",
            registry=self._registry,
        )
        # all other metrics, as they were at the latest update
        self._state: list[Any] = []
        self._updated_at = float("-inf")
        self._error = ""

    def hook_ended(self, run: HookRun, record: EventRecord | None) -> None:
        """Count a hook run that has ended; `record` is its event, if that is known."""
        self._updated_at = float("-inf")
        name = printable(run.name)
        try:
            self._runs.labels(run.stage, name, run.state).inc()
            if run.ended is not None:
                self._durations.labels(run.stage, name).observe(max(0.0, (run.ended - run.began).total_seconds()))
                if run.stage == PREPARE and record is not None:
                    self._seconds_left.set(record.event.seconds_left(run.ended))
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
            self._begin_at_zero(runner.host.hooks)
            is_first, self._state = not self._state, list(self._state_of(runner))
            if is_first:
                self._registry.register(self)
            if self._path:
                # node_exporter is another user
                durable_file.write(self._path, self._client.generate_latest(self._registry), mode=0o644)
        except Exception as reason:  # the library is another project's; its check of a name must not end the daemon
            error = f"metrics cannot be written: {reason if isinstance(reason, OSError) else repr(reason)}"
        if error and error != self._error:
            log.warning(error)
        self._error = error

    def collect(self) -> list[Any]:
        """Return the metrics of the state; the registry calls this, also in the threads of the server."""
        return self._state

    def app(self) -> Any:
        """Return the WSGI application that answers with all metrics."""
        return self._client.make_wsgi_app(self._registry)

    def _begin_at_zero(self, hooks: Hooks) -> None:
        """Show each result of each hook as 0: Prometheus does not see the increase to the first value of a series."""
        for hook in (hook for of_stage in hooks.values() for hook in of_stage):
            name = printable(hook.name)
            self._durations.labels(hook.stage, name)
            for result in RESULTS:
                self._runs.labels(hook.stage, name, result)

    def _state_of(self, runner: Runner) -> Iterator[Any]:
        """Yield the metrics that show the present state."""
        gauge, counter = self._client.core.GaugeMetricFamily, self._client.core.CounterMetricFamily
        records, since, health = runner.records, runner.records.failing_since, runner.health
        # texts of IMDS may be invalid UTF-8
        events = collections.Counter(
            (printable(record.event.event_type), str(affects_this_vm(record, runner.host.own_name)).lower())
            for record in records.known
        )
        shown = gauge(PREFIX + "events", "Events that are not gone", labels=("type", "affects_this_vm"))
        for labels, count in events.items():
            shown.add_metric(labels, count)
        yield shown
        present = "" if records.maintenance is None else runner.machine.phase
        phases = gauge(PREFIX + "maintenance", "1 for the phase of the open maintenance", labels=("phase",))
        for phase in PHASES:
            phases.add_metric((phase,), phase == present)
        yield phases
        text, at = "When IMDS gave its last good answer, in Unix time", health.last_good
        yield gauge(PREFIX + "last_good_poll_timestamp_seconds", text, None if at is None else at.timestamp())
        yield gauge(PREFIX + "imds_ok", "1 while the latest poll brought a good answer", health.is_ok)
        errors = counter(PREFIX + "imds_errors", "Polls without a good answer", labels=("kind",))
        for kind in sorted({*ERRORS, *health.errors}):
            errors.add_metric((kind,), health.errors[kind])
        yield errors
        answers = counter(PREFIX + "approval_answers", "Answers of IMDS to approvals", labels=("result",))
        for result in sorted({ACCEPTED, *ERRORS, *health.approvals}):
            answers.add_metric((result,), health.approvals[result])
        yield answers
        yield gauge(PREFIX + "records_degraded", "1 while records cannot be written", since is not None)
        text = "Since when records cannot be written, in Unix time; 0 while they can"
        yield gauge(PREFIX + "records_degraded_since_timestamp_seconds", text, since.timestamp() if since else 0)
        text = "1 while a recover hook has failed and has not succeeded since"
        yield gauge(PREFIX + "not_recovered", text, bool(not_recovered(runner)))
        yield gauge(PREFIX + "paused", "1 while an operator has paused the daemon", records.state.pause is not None)


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
