# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Metrics for node_exporter's textfile collector, written by prometheus_client."""

from __future__ import annotations

import collections
from datetime import datetime
from typing import Any

from azure_scheduled_events.errors import ImdsError
from hook_runner.atomic_file import replace_file
from hook_runner.clock import ServerClock
from hook_runner.lifecycle.engine import Engine
from hook_runner.lifecycle.stage_plan import not_recovered
from hook_runner.log import printable
from hook_runner.records import PREPARE, EventRecord, HookRun
from hook_runner.reporting.imds_health import ImdsHealth, kind_of

PREFIX = "azure_scheduled_events_"
# seconds; hooks take from a moment to a quarter of an hour
BUCKETS = (0.1, 0.5, 1, 5, 10, 30, 60, 120, 300, 600, 900)


class Metrics:
    """Collects metrics and writes them to a file.

    Raises ImportError if prometheus_client is not installed.
    """

    def __init__(self, path: str) -> None:
        import prometheus_client  # only if metrics are configured: it needs 10 MB

        self._path = path
        self._client: Any = prometheus_client
        registry = self._registry = prometheus_client.CollectorRegistry()
        self._events = prometheus_client.Gauge(
            PREFIX + "events", "Events known now", ["type", "stage"], registry=registry
        )
        self._last_good = prometheus_client.Gauge(
            PREFIX + "last_good_poll_timestamp_seconds",
            "When IMDS gave its last good answer, in Unix time",
            registry=registry,
        )
        self._imds_ok = prometheus_client.Gauge(
            PREFIX + "imds_ok", "1 while the latest poll brought a good answer", registry=registry
        )
        self._errors = prometheus_client.Counter(
            PREFIX + "imds_errors", "Polls without a good answer", ["kind"], registry=registry
        )
        self._durations = prometheus_client.Histogram(
            PREFIX + "hook_duration_seconds",
            "How long hooks ran",
            ["stage", "hook"],
            buckets=BUCKETS,
            registry=registry,
        )
        self._results = prometheus_client.Counter(
            PREFIX + "hook_runs", "Hook runs by result", ["stage", "hook", "result"], registry=registry
        )
        self._left = prometheus_client.Gauge(
            PREFIX + "prepare_end_seconds_left",
            "Seconds that were left when the latest preparation ended",
            registry=registry,
        )
        self._degraded = prometheus_client.Gauge(
            PREFIX + "journal_degraded", "1 while the journal cannot be written", registry=registry
        )
        self._approvals = prometheus_client.Counter(
            PREFIX + "approval_answers", "Answers of IMDS to approvals", ["result"], registry=registry
        )
        self._not_recovered = prometheus_client.Gauge(
            PREFIX + "not_recovered", "Events that are over, whose recover hooks have not succeeded", registry=registry
        )
        self._paused = prometheus_client.Gauge(
            PREFIX + "paused", "1 while an operator has paused the daemon", registry=registry
        )
        self._degraded_since = prometheus_client.Gauge(
            PREFIX + "journal_degraded_since_timestamp_seconds",
            "Since when the journal cannot be written, in Unix time; 0 while it can",
            registry=registry,
        )
        self._reported: collections.Counter[str] = collections.Counter()

    def step_ended(self, record: EventRecord, step: HookRun, clock: ServerClock) -> None:
        """A hook run has ended."""
        self._results.labels(step.stage, printable(step.hook), step.state).inc()
        if step.started_at is not None and step.ended_at is not None:
            self._durations.labels(step.stage, printable(step.hook)).observe(
                max(0.0, (step.ended_at - step.started_at).total_seconds())
            )
        if step.stage == PREPARE:
            self._left.set(record.event.seconds_left(clock.now()))

    def approval_answered(self, error: ImdsError | None) -> None:
        """Count an answer to an approval; ``error``: None if IMDS accepted it."""
        self._approvals.labels("accepted" if error is None else kind_of(error)).inc()

    def write(self, engine: Engine, health: ImdsHealth, degraded: bool, degraded_since: datetime | None = None) -> None:
        """Write the file, whole or not at all. Raises OSError."""
        self._events.clear()
        # texts of IMDS and file names may be invalid UTF-8
        for (kind, stage), count in collections.Counter(
            (printable(record.event.event_type), record.phase) for record in engine.records
        ).items():
            self._events.labels(kind, stage).set(count)
        self._imds_ok.set(int(health.last_good is not None and not health.error))
        if health.last_good is not None:
            self._last_good.set(health.last_good.timestamp())
        for kind, count in health.errors.items():
            self._errors.labels(kind).inc(count - self._reported[kind])
            self._reported[kind] = count
        self._degraded.set(int(degraded))
        self._not_recovered.set(sum(bool(not_recovered(engine.runtime.hooks, record)) for record in engine.records))
        self._paused.set(int(engine.pausing.current() is not None))
        self._degraded_since.set(0 if degraded_since is None else degraded_since.timestamp())
        # node_exporter is another user
        replace_file(self._path, self._client.generate_latest(self._registry), 0o644)
