# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""Reads the events of this VM from IMDS for one job."""

from __future__ import annotations

import time
from datetime import datetime, timezone
from typing import Callable, Iterable, NamedTuple

from azure_scheduled_events.changes import ABSENCES_NEEDED
from azure_scheduled_events.document import EventDocument
from azure_scheduled_events.identity import affects
from azure_scheduled_events.session import ConnectionOptions, ImdsSession

from .configuration import Configuration

# seconds that a job waits for IMDS; its caller retries
IMDS_TIMEOUT = 15.0
STATUS_IMDS_TIMEOUT = 8.0
# seconds between two documents
POLL_INTERVAL = 1.0


class Observation(NamedTuple):
    """One good document, and this VM's name."""

    document: EventDocument
    name: str

    @property
    def now(self) -> datetime:
        """Return the server's time, or this system's if the answer had none."""
        return self.document.server_time or datetime.now(timezone.utc)

    def is_listed(self, event_id: str) -> bool:
        """Return False if the document shows that the event is over for this VM."""
        event = self.document.find(event_id)
        if event is None:
            return not self.document.complete
        return affects(event, self.name) or not event.resources or event.key in self.document.doubtful


def open_session(
    configuration: Configuration, timeout: float, sleep: Callable[[float], None] = time.sleep
) -> ImdsSession:
    """Return a session with the configured IMDS that may last ``timeout`` seconds."""
    where = ConnectionOptions(configuration.endpoint, configuration.api_versions, configuration.resource_name, timeout)
    return ImdsSession(where, POLL_INTERVAL, sleep=sleep)


def observe(session: ImdsSession) -> Observation:
    """Read the events once; raise ImdsError on failure."""
    document = session.read_events(name_required=True)
    return Observation(document, str(session.resource_name))


def ended_events(
    session: ImdsSession, event_ids: Iterable[str], record_observation: Callable[[Observation], object]
) -> frozenset[str]:
    """Return those of the events that ABSENCES_NEEDED good documents in a row no longer list.

    ``record_observation`` is called with each observation. The function raises ImdsError if IMDS gave no
    good document.
    """
    over = set(event_ids)
    for number in range(ABSENCES_NEEDED):
        if number:
            session.pacer.sleep(POLL_INTERVAL)
        seen = observe(session)
        record_observation(seen)
        over = {event_id for event_id in over if not seen.is_listed(event_id)}
        if not over:
            break
    return frozenset(over)
