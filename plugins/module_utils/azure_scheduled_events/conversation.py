# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""IMDS as one call of a door uses it (a run of a module, a function, a state): paced, and limited in time as a whole."""

from __future__ import annotations

import time
from typing import Any, Callable, TypeVar

from .document import EventDocument
from .errors import ImdsError, ImdsUnreachable, OwnNameUnknown
from .identity import own_name
from .imds import Imds
from .named_tuple import NamedTuple
from .pacing import Pacer

# seconds for one answer, once IMDS has answered at all, and before it ever has
# (docs/reference/scheduled-events.md 1.8)
ONE_ANSWER = 10.0
FIRST_ANSWER = 130.0
# for what a call can do without
UNNEEDED_ANSWER = 2.0

T = TypeVar("T")


class Where(NamedTuple):
    """Whom to ask, as whom, and for how long."""

    endpoint: str
    api_versions: tuple[str, ...]
    resource_name: str | None
    timeout: float


class Conversation:
    """What one call asks. ``known_name`` is this VM's resource name as far as it is known.

    Args:
        where: the timeout limits the conversation as a whole.
        interval: seconds between polls.
        clock: monotonic seconds.
        sleep: waits some seconds.
    Raises ImdsError for an endpoint that is none.
    """

    def __init__(
        self,
        where: Where,
        interval: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        answer, first = min(ONE_ANSWER, where.timeout), min(FIRST_ANSWER, where.timeout)
        self.imds = Imds(where.endpoint, where.api_versions, answer, first)
        self.pacer = Pacer(self.imds, interval, clock, sleep)
        self._deadline = self.pacer.clock() + where.timeout
        self.known_name = where.resource_name

    def left(self) -> float:
        """Seconds that remain of the time for the conversation."""
        return max(0.1, self._deadline - self.pacer.clock())

    def ask(self, question: Callable[..., T], *args: object) -> T:
        """Ask until a good answer comes or the time is up; then the last error is raised.

        A host where nobody listens and a request that cannot succeed are not asked twice.
        """
        while True:
            try:
                return self.pacer.call(question, *args, within=self.left())
            except ImdsError as error:
                nobody = isinstance(error, ImdsUnreachable) and not error.connected
                delay = 0.0 if error.retryable and error.status == 400 else self.pacer.delay(event_known=True)
                if nobody or not error.retryable or delay >= self.left():
                    raise
                self.pacer.sleep(delay)

    def read(self, name_required: bool) -> EventDocument:
        """The events; ``known_name`` is this VM's resource name then.

        Where the name is not required it is asked for once, after the events, and may remain None.
        Raises ImdsError.
        """
        if self.known_name is None and name_required:
            self._learn_name(self.ask(self.imds.instance))
        document = self.ask(self.imds.events)
        if self.known_name is None:
            try:
                self.known_name = own_name(
                    self.pacer.call(self.imds.instance, within=min(UNNEEDED_ANSWER, self.left()))
                )
            except ImdsError:
                pass  # what was asked for is known
        return document

    def poll(self, name_required: bool) -> Callable[[float], EventDocument]:
        """A poll for wait_for: one attempt at the document, and at the name as long as that is missing."""

        def once(within: float) -> EventDocument:
            ends = self.pacer.clock() + within
            if self.known_name is None and name_required:
                self._learn_name(self.pacer.call(self.imds.instance, within=within))
            return self.pacer.call(self.imds.events, within=max(0.1, ends - self.pacer.clock()))

        return once

    def _learn_name(self, instance: dict[str, Any]) -> None:
        self.known_name = own_name(instance)
        if self.known_name is None:
            raise OwnNameUnknown()
