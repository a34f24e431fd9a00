# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""Reads the events of this VM from IMDS for one job."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Callable, NamedTuple

from azure_scheduled_events.identity import affects
from azure_scheduled_events.session import ConnectionOptions, ImdsSession
from azure_scheduled_events.tracking import Observation, Tracker

from .configuration import Configuration

# seconds that a job waits for IMDS; its caller retries
IMDS_TIMEOUT = 15.0
STATUS_IMDS_TIMEOUT = 8.0
# seconds between two documents
POLL_INTERVAL = 1.0


class VmObservation(NamedTuple):
    """The events after the last document of a job, and this VM's name."""

    tracked: Observation
    name: str

    @property
    def now(self) -> datetime:
        """Return the server's time, or this system's if the answer had none."""
        return self.tracked.document.server_time or datetime.now(timezone.utc)

    def is_over(self, key: str) -> bool:
        """Return True if the event is gone, or this VM is gone from it."""
        sighting = self.tracked.events.get(key)
        return sighting is None or not affects(sighting.event, self.name)


def open_session(
    configuration: Configuration, timeout: float, clock: Callable[[], float], sleep: Callable[[float], None]
) -> ImdsSession:
    """Return a session with the configured IMDS that may last ``timeout`` seconds."""
    where = ConnectionOptions(configuration.endpoint, configuration.api_versions, configuration.resource_name, timeout)
    return ImdsSession(where, POLL_INTERVAL, clock, sleep)


def observe(
    session: ImdsSession,
    tracker: Tracker | None = None,
    is_undecided: Callable[[VmObservation], bool] = lambda seen: False,
) -> VmObservation:
    """Read documents until one decides, or the session's time is up; raise ImdsError on a failure.

    ``tracker`` knows the events of the minion's record, which count as listed with all their VMs until documents lack
    them. ``is_undecided`` returns True if another document may change the decision.
    """
    tracker = tracker or Tracker()
    while True:
        document = session.read_events(name_required=True)
        seen = VmObservation(tracker.observe(document), str(session.resource_name))
        if not is_undecided(seen) or session.time_left() <= POLL_INTERVAL:
            return seen
        session.pacer.sleep(POLL_INTERVAL)
