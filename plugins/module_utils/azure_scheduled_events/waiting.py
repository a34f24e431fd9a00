# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Poll until a predicate holds for a good document, or the time is up."""

from __future__ import annotations

from typing import Callable, NamedTuple, Optional

from .document import EventDocument
from .errors import ImdsError, ImdsRefused
from .pacing import Pacer


class Waited(NamedTuple):
    """How a wait ended.

    Attributes:
        reached: whether the predicate held.
        document: the last good document, or None where there never was one.
        elapsed: seconds that the wait took.
        errors: how many polls brought no good answer.
        last_error: the latest error, or None where there was none.
    """

    reached: bool
    document: Optional[EventDocument]
    elapsed: float
    errors: int
    last_error: Optional[ImdsError]


def wait_for(
    pacer: Pacer,
    poll: Callable[[float], EventDocument],
    holds: Callable[[EventDocument], bool],
    timeout: float,
) -> Waited:
    """Poll at the pacer's interval until ``holds`` says so, at most ``timeout`` seconds. At least one poll is made.

    poll: gets a good document through the pacer, within so many seconds, or raises ImdsError.

    Errors of IMDS do not end the wait and are never taken for an empty document; they slow the polling down as the
    retry table says. Only a refused api-version is raised at once, as no wait can mend it.
    """
    started = pacer.clock()
    document: Optional[EventDocument] = None
    errors = 0
    last_error: Optional[ImdsError] = None
    while True:
        polled = pacer.clock()
        try:
            document = poll(max(started + timeout - polled, 0.1))
        except ImdsError as error:
            if isinstance(error, ImdsRefused) and error.supported_versions and not error.retryable:
                raise
            last_error = error
            errors += 1
        else:
            if holds(document):
                return Waited(True, document, pacer.clock() - started, errors, last_error)
        now = pacer.clock()
        left = started + timeout - now
        if left <= 0:
            return Waited(False, document, now - started, errors, last_error)
        pause = polled + pacer.delay(document is not None and bool(document.events)) - now
        # the last poll comes right at the end, so that an event of the last second is not missed
        pacer.sleep(max(0.0, min(pause, left)))
