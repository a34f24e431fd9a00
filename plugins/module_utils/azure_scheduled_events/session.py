# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""IMDS as one call of a door uses it (a run of a module, a function, a state): paced, and limited in time as a whole."""

from __future__ import annotations

import time
from typing import Any, Callable, TypeVar

from .document import EventDocument
from .errors import ImdsError, ImdsRefused, ImdsUnreachable, OwnNameUnknown
from .identity import resource_name_of
from .imds import Imds
from .named_tuple import NamedTuple
from .pacing import Pacer

# seconds for one answer, once IMDS has answered at all, and before it ever has
# (docs/reference/scheduled-events.md 1.8)
ANSWER_TIMEOUT = 10.0
FIRST_ANSWER_TIMEOUT = 130.0
# for what a call can do without
OPTIONAL_ANSWER_TIMEOUT = 2.0

T = TypeVar("T")


class ConnectionOptions(NamedTuple):
    """Whom to ask, as whom, and for how long."""

    endpoint: str
    api_versions: tuple[str, ...]
    resource_name: str | None
    timeout: float


class ImdsSession:
    """What one call asks. ``resource_name`` is this VM's resource name as far as it is known.

    Args:
        where: the timeout limits the session as a whole.
        interval: seconds between polls.
        clock: monotonic seconds.
        sleep: waits some seconds.
    Raises ImdsError for an endpoint that is none.
    """

    def __init__(
        self,
        where: ConnectionOptions,
        interval: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        answer, first = min(ANSWER_TIMEOUT, where.timeout), min(FIRST_ANSWER_TIMEOUT, where.timeout)
        self.imds = Imds(where.endpoint, where.api_versions, answer, first)
        self.pacer = Pacer(self.imds, interval, clock, sleep)
        self._deadline = self.pacer.clock() + where.timeout
        self.resource_name = where.resource_name

    def time_left(self) -> float:
        """Seconds that remain of the time for the session."""
        return max(0.1, self._deadline - self.pacer.clock())

    def call_with_retries(self, question: Callable[..., T], *args: object) -> T:
        """Ask until a good answer comes or the time is up; then the last error is raised.

        A host where nobody listens and a request that cannot succeed are not asked twice.
        """
        while True:
            try:
                return self.pacer.call(question, *args, within=self.time_left())
            except ImdsError as error:
                no_service = isinstance(error, ImdsUnreachable) and not error.connected
                falls_back = isinstance(error, ImdsRefused) and error.version_fallback
                delay = 0.0 if falls_back else self.pacer.delay(event_known=True)
                if no_service or not error.retryable or delay >= self.time_left():
                    raise
                self.pacer.sleep(delay)

    def read_events(self, name_required: bool) -> EventDocument:
        """The events; ``resource_name`` is this VM's resource name then.

        Where the name is not required it is asked for once, after the events, and may remain None.
        Raises ImdsError.
        """
        if self.resource_name is None and name_required:
            self._set_resource_name(self.call_with_retries(self.imds.instance))
        document = self.call_with_retries(self.imds.events)
        if self.resource_name is None:
            try:
                self.resource_name = resource_name_of(
                    self.pacer.call(self.imds.instance, within=min(OPTIONAL_ANSWER_TIMEOUT, self.time_left()))
                )
            except ImdsError:
                pass  # what was asked for is known
        return document

    def event_poll(self, name_required: bool) -> Callable[[float], EventDocument]:
        """A poll for wait_for: one attempt at the document, and at the name as long as that is missing."""

        def once(within: float) -> EventDocument:
            ends = self.pacer.clock() + within
            if self.resource_name is None and name_required:
                self._set_resource_name(self.pacer.call(self.imds.instance, within=within))
            return self.pacer.call(self.imds.events, within=max(0.1, ends - self.pacer.clock()))

        return once

    def _set_resource_name(self, instance: dict[str, Any]) -> None:
        self.resource_name = resource_name_of(instance)
        if self.resource_name is None:
            raise OwnNameUnknown()
