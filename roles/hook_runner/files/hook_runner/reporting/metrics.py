# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Metrics of the daemon, kept by prometheus_client: for a file, and for an HTTP server."""

from __future__ import annotations

import collections
from datetime import datetime
from typing import Any, Mapping, NamedTuple

from azure_scheduled_events.errors import ImdsError
from azure_scheduled_events.printable import printable
from hook_runner.clock import ServerClock
from hook_runner.lifecycle.engine import Engine
from hook_runner.lifecycle.stage_plan import not_recovered
from hook_runner.records import PREPARE, RUNNING, STEP_STATES, EventRecord, HookRun
from hook_runner.reporting import metrics_server
from hook_runner.reporting.imds_health import ImdsHealth, kind_of

PREFIX = "azure_scheduled_events_"
# seconds; hooks take from a moment to a quarter of an hour
BUCKETS = (0.1, 0.5, 1, 5, 10, 30, 60, 120, 300, 600, 900)
# the usual results of requests to IMDS, which are counted from 0 on; others appear with their first occurrence
ACCEPTED = "accepted"
ERRORS = (*(f"status-{status}" for status in (400, 403, 404, 410, 429, 500, 503)), "unreachable", "unreadable")


class Definition(NamedTuple):
    """One metric: the class of prometheus_client, its help, and the names of its labels."""

    kind: str
    text: str
    labels: tuple[str, ...] = ()


# the metrics by name, without PREFIX and without the suffix _total of counters
METRICS: Mapping[str, Definition] = {
    "events": Definition("Gauge", "Events known now", ("type", "stage")),
    "last_good_poll_timestamp_seconds": Definition("Gauge", "When IMDS gave its last good answer, in Unix time"),
    "imds_ok": Definition("Gauge", "1 while the latest poll brought a good answer"),
    "imds_errors": Definition("Counter", "Polls without a good answer", ("kind",)),
    "hook_duration_seconds": Definition("Histogram", "How long hooks ran", ("stage", "hook")),
    "hook_runs": Definition("Counter", "Hook runs by result", ("stage", "hook", "result")),
    "prepare_end_seconds_left": Definition("Gauge", "Seconds that were left when the latest preparation ended"),
    "records_degraded": Definition("Gauge", "1 while records cannot be written"),
    "approval_answers": Definition("Counter", "Answers of IMDS to approvals", ("result",)),
    "not_recovered": Definition("Gauge", "Events that are over, whose recover hooks have not succeeded"),
    "paused": Definition("Gauge", "1 while an operator has paused the daemon"),
    "records_degraded_since_timestamp_seconds": Definition(
        "Gauge", "Since when records cannot be written, in Unix time; 0 while they can"
    ),
}


class Metrics:
    """Collects metrics.

    Raises ImportError if prometheus_client is not installed.
    """

    def __init__(self) -> None:
        import prometheus_client  # only hosts with metrics need the library

        self._client: Any = prometheus_client
        self._registry = prometheus_client.CollectorRegistry()
        self._metrics = {name: self._make(name, definition) for name, definition in METRICS.items()}
        self._reported: collections.Counter[str] = collections.Counter()
        self._shown: set[tuple[str, str]] = set()
        self._hooks: Mapping[str, Any] | None = None
        for error in ERRORS:
            self._metrics["imds_errors"].labels(error)
        for result in (ACCEPTED, *ERRORS):
            self._metrics["approval_answers"].labels(result)

    def _make(self, name: str, definition: Definition) -> Any:
        options = {"buckets": BUCKETS} if definition.kind == "Histogram" else {}
        kind = getattr(self._client, definition.kind)
        return kind(PREFIX + name, definition.text, definition.labels, registry=self._registry, **options)

    def step_ended(self, record: EventRecord, step: HookRun, clock: ServerClock) -> None:
        """Count a hook run that has ended."""
        self._metrics["hook_runs"].labels(step.stage, printable(step.hook), step.state).inc()
        if step.started_at is not None and step.ended_at is not None:
            self._metrics["hook_duration_seconds"].labels(step.stage, printable(step.hook)).observe(
                max(0.0, (step.ended_at - step.started_at).total_seconds())
            )
        if step.stage == PREPARE:
            self._metrics["prepare_end_seconds_left"].set(record.event.seconds_left(clock.now()))

    def approval_answered(self, error: ImdsError | None) -> None:
        """Count an answer to an approval; ``error``: None if IMDS accepted it."""
        self._metrics["approval_answers"].labels(ACCEPTED if error is None else kind_of(error)).inc()

    def update(self, engine: Engine, health: ImdsHealth, degraded_since: datetime | None = None) -> None:
        """Set the metrics that show the present state."""
        self._begin_at_zero(engine)
        # texts of IMDS and file names may be invalid UTF-8
        events = collections.Counter((printable(record.event.event_type), record.phase) for record in engine.records)
        # the HTTP server reads at any time: a metric that keeps its value is not removed for a moment
        for labels in self._shown - set(events):
            self._metrics["events"].remove(*labels)
        for labels, count in events.items():
            self._metrics["events"].labels(*labels).set(count)
        self._shown = set(events)
        self._metrics["imds_ok"].set(int(health.last_good is not None and not health.error))
        if health.last_good is not None:
            self._metrics["last_good_poll_timestamp_seconds"].set(health.last_good.timestamp())
        for kind, count in health.errors.items():
            self._metrics["imds_errors"].labels(kind).inc(count - self._reported[kind])
            self._reported[kind] = count
        self._metrics["records_degraded"].set(int(degraded_since is not None))
        self._metrics["not_recovered"].set(
            sum(bool(not_recovered(engine.runtime.hooks, record)) for record in engine.records)
        )
        self._metrics["paused"].set(int(engine.pausing.current() is not None))
        self._metrics["records_degraded_since_timestamp_seconds"].set(
            0 if degraded_since is None else degraded_since.timestamp()
        )

    def _begin_at_zero(self, engine: Engine) -> None:
        """Show each result of each hook as 0: Prometheus does not see the increase to the first value of a series."""
        if self._hooks is engine.runtime.hooks:
            return
        self._hooks = engine.runtime.hooks
        for stage, hooks in self._hooks.items():
            for name in {printable(hook.name) for hook in hooks}:
                self._metrics["hook_duration_seconds"].labels(stage, name)
                for state in STEP_STATES:
                    if state != RUNNING:
                        self._metrics["hook_runs"].labels(stage, name, state)

    def as_text(self) -> bytes:
        """Return all metrics in the text format of Prometheus."""
        text: bytes = self._client.generate_latest(self._registry)
        return text

    def serve(self, address: str) -> None:
        """Answer HTTP requests in threads from now on. Raises OSError if the address is not available.

        The address is an IP address and a port, such as 127.0.0.1:9758 or [::1]:9758.
        """
        metrics_server.serve(address, self._client.make_wsgi_app(self._registry))
