# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""What the main loop does with the messages of the poller: documents, failed polls, the name, answers to approvals."""

from __future__ import annotations

import logging
from datetime import datetime
from typing import Optional, Sequence

from azure_scheduled_events.document import EventDocument
from azure_scheduled_events.errors import ImdsError
from hook_runner.clock import ServerClock
from hook_runner.reporting.imds_health import ImdsHealth
from hook_runner.reporting.metrics import Metrics
from hook_runner.runner import Runner

log = logging.getLogger(__name__)

# a Date header, and the monotonic time of its arrival
Date = tuple[Optional[datetime], float]


class Intake:
    """Hands to the runner what the poller has found, and keeps clock and health up to date.

    `metrics` is None if none are configured.
    """

    def __init__(self, runner: Runner, clock: ServerClock, health: ImdsHealth, metrics: Metrics | None = None) -> None:
        self.runner, self.clock, self.health, self.metrics = runner, clock, health, metrics

    @property
    def awaits_document(self) -> bool:
        """Whether the next document is needed even if it is unchanged."""
        return self.runner.machine.awaits_document or self.clock.is_doubtful

    def document_received(self, document: EventDocument, dates: Sequence[Date]) -> None:
        """Take in a good document; `dates` are those of this answer and of those before it, the latest last."""
        for date, at in dates:
            odd = self.clock.synchronise(date, at)
            if odd is not None:
                log.warning(odd)
        self.health.poll_succeeded(document, self.clock.now())
        self.runner.observe(document)

    def poll_failed(self, error: ImdsError, is_outage: bool) -> None:
        """Note a poll without a good document; `is_outage`: whether this is worth an alarm."""
        self.health.poll_failed(error, is_outage, self.clock.now())
        self.runner.machine.approvals.poll_failed()

    def name_resolved(self, name: str, vm_id: str) -> None:
        """Take over this VM's resource name, and its id or ""."""
        self.runner.name_resolved(name, vm_id)
        log.info("this VM is %s", self.runner.host.own_name)

    def name_unavailable(self, reason: str) -> None:
        """Note that IMDS did not return this VM's resource name."""
        self.runner.name_unavailable()
        if not self.runner.host.own_name:
            self.health.name_unavailable(reason)

    def approval_answered(self, key: str, error: ImdsError | None) -> None:
        """Note that IMDS accepted the approval of the event with this key (error None), or did not."""
        self.runner.machine.approvals.answered(key, error, self.clock.now())
        if self.metrics is not None:
            self.metrics.approval_answered(error)

    def approval_withheld(self, key: str) -> None:
        """Note that an approval was not sent: the event has changed, its state is unknown, or it was withdrawn."""
        self.runner.machine.approvals.withheld(key, self.clock.now())
