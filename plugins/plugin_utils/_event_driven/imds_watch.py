# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Polls IMDS for a rulebook: one poll per call, and one log line per transition of IMDS's state."""

from __future__ import annotations

import logging
import time
import typing as t
import uuid
from datetime import datetime, timedelta, timezone

from ...module_utils.azure_scheduled_events.change_record import change_record
from ...module_utils.azure_scheduled_events.changes import APPEARED, GONE, Change
from ...module_utils.azure_scheduled_events.document import ScheduledEvent
from ...module_utils.azure_scheduled_events.errors import ImdsError
from ...module_utils.azure_scheduled_events.identity import resource_name_of
from ...module_utils.azure_scheduled_events.imds import Imds
from ...module_utils.azure_scheduled_events.outcome import outcome_of
from ...module_utils.azure_scheduled_events.pacing import WATCHING, Pacer
from ...module_utils.azure_scheduled_events.session import OPTIONAL_ANSWER_TIMEOUT
from ...module_utils.azure_scheduled_events.tracking import Observation, Tracker
from .change import REPORTED_BY_SOURCE
from .source_options import SourceOptions

LOGGER = logging.getLogger("azure_imds.scheduled_events.event_source")

# seconds between two requests for the name of this VM, which only describes the reports
_NAME_INTERVAL = 60.0
# a clock that is set back must not make a later change look older than an earlier one
_LONG_AGO = datetime(1970, 1, 1, tzinfo=timezone.utc)
_SMALLEST_STEP = timedelta(milliseconds=1)


class ImdsWatch:
    """Watches the events of one VM's IMDS. For one thread at a time.

    ``clock`` returns monotonic seconds; ``sleep`` waits some seconds, for the rate limit.
    """

    def __init__(
        self,
        options: SourceOptions,
        clock: t.Callable[[], float] = time.monotonic,
        now: t.Callable[[], datetime] = lambda: datetime.now(timezone.utc),
        sleep: t.Callable[[float], None] = time.sleep,
    ) -> None:
        self._imds = Imds(options.endpoint, options.api_version, timeout=options.timeout, clock=clock)
        self._pacer = Pacer(self._imds, options.interval, clock, sleep, retries=WATCHING)
        self._clock, self._now = clock, now
        self._latest = _LONG_AGO
        self._tracker = Tracker()
        self._due_within = options.due_within
        # keys of the present events that were reported
        self._reported: set[str] = set()
        self._name = options.resource_name
        self._name_requested: float | None = None
        self._failing = False
        self._warned: tuple[str, ...] = ()

    def poll(self) -> tuple[list[dict[str, t.Any]], float]:
        """Poll once; return the changes of events, and the seconds until the next poll."""
        began = self._clock()
        if self._name is None:
            self._request_name()
        try:
            document = self._pacer.call(self._imds.events)
        except ImdsError as error:
            self._note_failure(error)
            found: list[dict[str, t.Any]] = []
        else:
            self._note_success(document.warnings)
            now = self._latest = max(self._now(), self._latest + _SMALLEST_STEP)
            observation = self._tracker.observe(document)
            changes = self._due_changes(observation, document.server_time or now)
            if changes:
                LOGGER.info("scheduled events: %s", _description(changes))
            seen = now.astimezone(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
            found = [self._record(change, observation, seen) for change in changes]
        return found, max(0.0, began + self._pacer.delay() - self._clock())

    def close(self) -> None:
        """Close the connection."""
        self._imds.close()

    def _due_changes(self, seen: Observation, now: datetime) -> list[Change]:
        """Return the changes to report: an event appears when it is due, and has no changes before."""
        found = [change for change in seen.changes if change.event.key in self._reported]
        self._reported.intersection_update(seen.events)
        for key, sighting in seen.events.items():
            if key not in self._reported and sighting.listed and self._is_due(sighting.event, now):
                self._reported.add(key)
                found.append(Change(APPEARED, sighting.event))
        return found

    def _record(self, change: Change, seen: Observation, at: str) -> dict[str, t.Any]:
        return change_record(
            change.kind,
            change.event.as_dict(),
            str(uuid.uuid4()),
            at,
            REPORTED_BY_SOURCE,
            self._name or "",
            outcome_of(change.event.status == "Started") if change.kind == GONE else None,
            # a run also approves other events of its hosts
            other_events=[each.event.as_dict() for key, each in seen.events.items() if key != change.event.key],
        )

    def _is_due(self, event: ScheduledEvent, now: datetime) -> bool:
        return self._due_within is None or event.seconds_left(now) <= self._due_within

    def _request_name(self) -> None:
        now = self._clock()
        if self._name_requested is not None and now - self._name_requested < _NAME_INTERVAL:
            return
        self._name_requested = now
        try:
            self._name = resource_name_of(self._pacer.call(self._imds.instance, within=OPTIONAL_ANSWER_TIMEOUT))
        except ImdsError:
            self._pacer.succeeded()  # the poll that follows reports an outage

    def _note_failure(self, error: ImdsError) -> None:
        if not self._failing and self._pacer.is_outage():
            self._failing = True
            LOGGER.warning("scheduled events: unknown, because the poll failed; the source retries: %s", error)

    def _note_success(self, warnings: tuple[str, ...]) -> None:
        if self._failing:
            self._failing = False
            LOGGER.info("scheduled events: IMDS answers again")
        if warnings != self._warned:
            self._warned = warnings
            for text in warnings[:10]:
                LOGGER.warning("scheduled events: %s", text)


def _description(found: t.Iterable[Change]) -> str:
    """Return kinds and events for a line of the log."""
    return ", ".join(f"{change.event.event_type} {change.event.event_id!a} {change.kind}" for change in found)
