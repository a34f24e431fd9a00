# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Decides when the metrics are written. An error in the metrics never ends the daemon."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from azure_scheduled_events.errors import ImdsError
from hook_runner.clock import ServerClock
from hook_runner.config.directories import metrics_obstacle
from hook_runner.lifecycle.engine import Engine
from hook_runner.log import Log
from hook_runner.records import EventRecord, HookRun
from hook_runner.reporting.imds_health import ImdsHealth

if TYPE_CHECKING:
    from hook_runner.reporting.metrics import Metrics

METRICS_INTERVAL = 15.0


class MetricsFile:
    """The metrics of the daemon, if metrics_file is set.

    Args:
        metrics: collects the metrics; None if none are configured.
        clock: the server's clock.
        log: gets a line when an error begins.
    """

    def __init__(self, metrics: Metrics | None, clock: ServerClock, log: Log) -> None:
        self._metrics, self._clock, self._log = metrics, clock, log
        self._written_at = 0.0
        self._error = ""

    def step_ended(self, record: EventRecord, step: HookRun) -> None:
        """Count a hook run that has ended."""
        if self._metrics is None:
            return
        try:
            self._metrics.step_ended(record, step, self._clock)
        except Exception as reason:
            self._log.write("warning", f"a hook run is missing in the metrics: {reason!r}")
        self._written_at = 0.0

    def approval_answered(self, error: ImdsError | None) -> None:
        """Count an answer of IMDS to an approval; ``error``: None if IMDS accepted it."""
        if self._metrics is not None:
            self._metrics.approval_answered(error)
            self._written_at = 0.0

    def is_due(self, now: float) -> bool:
        """Return True if the file is to be written; ``now``: monotonic seconds."""
        return self._metrics is not None and now - self._written_at >= METRICS_INTERVAL

    def write(
        self, now: float, engine: Engine, health: ImdsHealth, is_degraded: bool, degraded_since: datetime | None
    ) -> None:
        """Write the file.

        Args:
            now: monotonic seconds.
            engine: has the events.
            health: has the availability of IMDS.
            is_degraded: whether the journal cannot be written.
            degraded_since: the time since which it cannot be written, or None.
        """
        if self._metrics is None:
            return
        self._written_at = now
        error = ""
        try:
            self._metrics.write(engine, health, is_degraded, degraded_since)
        except Exception as reason:  # the library is not ours; its opinion of a name must not end the daemon
            error = f"metrics cannot be written: {reason if isinstance(reason, OSError) else repr(reason)}"
        if error and error != self._error:
            self._log.write("warning", error)
        self._error = error


def open_metrics(path: str, owners: frozenset[int], log: Log) -> Metrics | None:
    """Return the metrics for this file; None if ``path`` is "" or the metrics cannot be collected."""
    if not path:
        return None
    obstacle = metrics_obstacle(path, owners)
    if obstacle:
        log.write("error", f"metrics_file: nothing is written: {obstacle}")
        return None
    from hook_runner.reporting.metrics import Metrics  # only in memory where it is used

    try:
        return Metrics(path)
    except ImportError:
        log.write(
            "error",
            "metrics_file: the Python library prometheus_client is not installed, and nothing is written;"
            " install it, or remove metrics_file",
        )
        return None
