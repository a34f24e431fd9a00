# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Updates the metrics and writes their file. An error in the metrics never ends the daemon."""

from __future__ import annotations

import logging

from azure_scheduled_events import durable_file
from azure_scheduled_events.errors import ImdsError
from hook_runner.clock import ServerClock
from hook_runner.config.directories import metrics_obstacle
from hook_runner.config.settings import Settings
from hook_runner.maintenance.record import EventRecord, HookRun
from hook_runner.reporting.imds_health import ImdsHealth
from hook_runner.reporting.metrics import Metrics
from hook_runner.runner import Runner

log = logging.getLogger(__name__)

METRICS_INTERVAL = 15.0


class MetricsOutput:
    """The metrics of the daemon, if metrics_file or metrics_address is set.

    `metrics` is None if none are configured, and `path` is "" for no file. The log gets a line when an error
    begins.
    """

    def __init__(self, metrics: Metrics | None, path: str, clock: ServerClock) -> None:
        self._metrics, self._path, self._clock = metrics, path, clock
        self._updated_at = 0.0
        self._error = ""

    def hook_ended(self, run: HookRun, record: EventRecord | None) -> None:
        """Count a hook run that has ended; `record` is its event, if that is known."""
        if self._metrics is None:
            return
        try:
            self._metrics.hook_ended(run, record, self._clock.now())
        except Exception as reason:
            log.warning("a hook run is missing in the metrics: %r", reason)
        self._updated_at = 0.0

    def approval_answered(self, error: ImdsError | None) -> None:
        """Count an answer of IMDS to an approval; ``error``: None if IMDS accepted it."""
        if self._metrics is not None:
            self._metrics.approval_answered(error)
            self._updated_at = 0.0

    def is_due(self, now: float) -> bool:
        """Return True if the metrics are to be updated; ``now``: monotonic seconds."""
        return self._metrics is not None and now - self._updated_at >= METRICS_INTERVAL

    def update(self, now: float, runner: Runner, health: ImdsHealth) -> None:
        """Update the metrics, and write the file, whole or not at all; `now` is in monotonic seconds."""
        if self._metrics is None:
            return
        self._updated_at = now
        error = ""
        try:
            self._metrics.update(runner, health)
            if self._path:
                # node_exporter is another user
                durable_file.write(self._path, self._metrics.as_text(), mode=0o644)
        except Exception as reason:  # the library is another project's; its check of a name must not end the daemon
            error = f"metrics cannot be written: {reason if isinstance(reason, OSError) else repr(reason)}"
        if error and error != self._error:
            log.warning(error)
        self._error = error


def open_metrics(settings: Settings, clock: ServerClock, owners: frozenset[int]) -> MetricsOutput:
    """Return the output of the metrics, whose HTTP server answers already; errors are in the log.

    `owners` are the uids that may own the folder above that of the file.
    """
    path, address = settings.metrics_file, settings.metrics_address
    obstacle = metrics_obstacle(path, owners) if path else ""
    if obstacle:
        log.error("metrics_file: nothing is written: %s", obstacle)
        path = ""
    metrics = _collector() if path or address else None
    if metrics is not None and address:
        try:
            metrics.serve(address)
        except OSError as error:
            log.error("metrics_address: %s is not available: %s; use another port", address, error.strerror)
            metrics = metrics if path else None
    return MetricsOutput(metrics, path, clock)


def _collector() -> Metrics | None:
    try:
        return Metrics()
    except ImportError:
        log.error(
            "metrics: the Python library prometheus_client is not installed, and there are no metrics;"
            " install it, or remove metrics_file and metrics_address",
        )
        return None
