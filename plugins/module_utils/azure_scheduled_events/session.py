# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""A session with IMDS for one call of a frontend: paced, with one time limit for the whole call."""

from __future__ import annotations

import time
from functools import partial
from typing import Any, Callable, NamedTuple, TypeVar

from .document import EventDocument
from .errors import ImdsError, ImdsUnreachable, OwnNameUnknown
from .identity import resource_name_of
from .imds import Imds
from .pacing import Pacer
from .transport import Transport, TransportFactory

# seconds for an answer that the call does not need
OPTIONAL_ANSWER_TIMEOUT = 2.0
# of the time that is left; the rest is for the answer itself
_HELD_PART = 0.8

T = TypeVar("T")


class ConnectionOptions(NamedTuple):
    """How to reach IMDS.

    Attributes:
        endpoint: base URL.
        api_versions: of Scheduled Events, in the order of fall-back.
        resource_name: this VM's resource name, or None to ask IMDS.
        timeout: seconds for the whole session.
    """

    endpoint: str
    api_versions: tuple[str, ...]
    resource_name: str | None
    timeout: float


class ImdsSession:
    """A session with IMDS.

    ``resource_name`` is this VM's resource name, or None while it is unknown. ``instance`` is the instance metadata
    from which the name was read, or None if it was not requested.

    Args:
        options: how to reach IMDS.
        interval: seconds between polls.
        clock: monotonic seconds.
        sleep: waits some seconds.
        transport: makes the transport of an endpoint.
        hold: seconds for which the transport may hold back an answer to a poll if the document is the last one.

    Raises:
        ImdsError: the endpoint is not a valid address.
    """

    def __init__(
        self,
        options: ConnectionOptions,
        interval: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        transport: TransportFactory = Transport,
        hold: float = 0.0,
    ) -> None:
        self.imds = Imds(options.endpoint, options.api_versions, clock=clock, transport=transport)
        self.pacer = Pacer(self.imds, interval, clock, sleep)
        self._deadline = self.pacer.clock() + options.timeout
        self._hold = hold
        self.resource_name = options.resource_name
        self.instance: dict[str, Any] | None = None

    def time_left(self) -> float:
        """Return the seconds that remain for the session; 0 or less if its time has passed."""
        return self._deadline - self.pacer.clock()

    def pause(self) -> bool:
        """Wait after an error as the retry table says; return False if no time is left for another attempt."""
        delay = self.pacer.delay(event_known=True)
        if delay >= self.time_left():
            return False
        self.pacer.sleep(delay)
        return True

    def call_with_retries(self, method: Callable[..., T]) -> T:
        """Return the result of a method of the client, called until it is good or the session's time is up.

        Refused connections and errors that are not retryable are raised at once.

        Raises:
            ImdsError: the last error.
        """
        while True:
            try:
                return self.pacer.call(method, within=self.time_left())
            except ImdsError as error:
                no_service = isinstance(error, ImdsUnreachable) and not error.connected
                if no_service or not error.retryable or not self.pause():
                    raise

    def read_events(self, name_required: bool) -> EventDocument:
        """Return the events, and set ``resource_name``; raise ImdsError if that fails.

        With ``name_required`` it is an error if the name stays unknown. Else the name is requested once, after the
        events, and may remain None.
        """
        if self.resource_name is None and name_required:
            self._set_resource_name(self.call_with_retries(self.imds.instance))
        document = self.call_with_retries(self.imds.events)
        if self.resource_name is None:
            within = min(OPTIONAL_ANSWER_TIMEOUT, self.time_left())
            try:
                self._set_resource_name(self.pacer.call(self.imds.instance, within=within))
            except ImdsError:
                pass  # the call does not need the name
        return document

    def poll(self, name_required: bool, within: float, may_hold: bool) -> EventDocument:
        """Return the events by one attempt within so many seconds; raise ImdsError if it fails.

        With ``name_required`` the name is requested first while it is missing. With ``may_hold`` the transport may hold
        back the answer if the document is the last one.
        """
        ends = self.pacer.clock() + within
        if self.resource_name is None and name_required:
            self._set_resource_name(self.pacer.call(self.imds.instance, within=within))
        left = ends - self.pacer.clock()
        hold = min(self._hold, max(0.0, left) * _HELD_PART) if may_hold else 0.0
        return self.pacer.call(partial(self.imds.events, hold=hold), within=left - hold)

    def _set_resource_name(self, instance: dict[str, Any]) -> None:
        self.instance = instance
        self.resource_name = resource_name_of(instance)
        if self.resource_name is None:
            raise OwnNameUnknown()
