# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""How IMDS has been of late, with one line in the log per change, not one per request."""

from __future__ import annotations

import collections
from datetime import datetime
from typing import Any

from azure_scheduled_events.document import EventDocument
from azure_scheduled_events.errors import ImdsError
from azure_scheduled_events.timestamps import as_utc_text
from hook_runner.clock import ServerClock
from hook_runner.log import Log


class ImdsHealth:
    """What is told of IMDS.

    Attributes:
        last_good: when the last good document came, by the server's clock; None before the first.
        error: the text of the trouble that lasts, or "".
        failing_since: when it began, or None.
        errors: how many polls failed so far, by kind.
        incomplete_since: since when documents have had entries that nobody can read, or None. As
            long as that lasts no event is taken for over, and somebody has to look at it.
    """

    def __init__(self, log: Log) -> None:
        self._log = log
        self.last_good: datetime | None = None
        self.error = ""
        self.failing_since: datetime | None = None
        self.errors: collections.Counter[str] = collections.Counter()
        self.incomplete_since: datetime | None = None
        self._kind = ""
        self._alarmed = False
        self._nameless = ""
        self._warned: tuple[str, ...] = ()
        self._last: EventDocument | None = None
        self._same_number = False

    def poll_succeeded(self, document: EventDocument, now: datetime) -> None:
        """A good document came."""
        if self.error:
            seconds = (now - self.failing_since).total_seconds() if self.failing_since else 0.0
            self._log.write("notice", f"IMDS answers again, after {seconds:.0f} s")
        elif self.last_good is None:
            self._log.write("info", f"IMDS answers: {len(document.events)} events")
        self.last_good = now
        self.error, self.failing_since, self._kind, self._alarmed = "", None, "", False
        if document.warnings != self._warned:
            for warning in document.warnings:
                if warning not in self._warned:
                    self._log.write("warning", f"the document is odd: {warning}")
            self._warned = document.warnings
        self._compare_numbers(document)
        if document.complete:
            self.incomplete_since = None
        elif self.incomplete_since is None:
            self.incomplete_since = now
            self._log.write(
                "error", "the document has entries that cannot be read: as long as it does, no event is taken for over"
            )

    def _compare_numbers(self, document: EventDocument) -> None:
        """Warn once if other events come under the DocumentIncarnation of the document before; they count all the same."""
        last, self._last = self._last, document
        if self._same_number or last is None or document.incarnation is None:
            return
        if document.incarnation == last.incarnation and document.events != last.events:
            self._same_number = True
            text = "IMDS: the events changed under an unchanged DocumentIncarnation (%d); the new ones count, and this is not repeated"
            self._log.write("warning", text % document.incarnation)

    def poll_failed(self, error: ImdsError, outage: bool, now: datetime) -> None:
        """A poll brought nothing."""
        kind = kind_of(error)
        self.errors[kind] += 1
        self.error = str(error)
        if self.failing_since is None:
            self.failing_since = now
        if kind != self._kind:
            self._kind = kind
            self._log.write(
                "warning", f"IMDS gives no good answer, so that nothing is concluded: {error}", azure_imds_error=kind
            )
        if outage and not self._alarmed and (now - self.failing_since).total_seconds() >= 60:
            self._alarmed = True
            since = as_utc_text(self.failing_since)
            self._log.write("error", f"what is known of events is stale since {since}: {error}", azure_imds_error=kind)

    def unchanged_document_at(self, clock: ServerClock, at: float) -> None:
        """A good document that brought nothing new came at this monotonic time."""
        if self.last_good is not None:
            self.last_good = max(self.last_good, clock.at(at))

    def name_unavailable(self, reason: str) -> None:
        """IMDS did not tell which VM this is."""
        if reason != self._nameless:
            self._nameless = reason
            text = "this VM's resource name is not known yet, so that nothing is done about new events; it is asked for again, or set resource_name: %s"
            self._log.write("warning", text % reason)

    def as_data(self) -> dict[str, Any]:
        """For `status`."""
        return {
            "ok": self.last_good is not None and not self.error,
            "last_good_poll": None if self.last_good is None else as_utc_text(self.last_good),
            "stale_since": None if self.failing_since is None else as_utc_text(self.failing_since),
            "error": self.error or None,
            "incomplete_since": None if self.incomplete_since is None else as_utc_text(self.incomplete_since),
            "errors": dict(self.errors),
        }


def kind_of(error: ImdsError) -> str:
    """A short name for the kind of an error: "status-503", "unreachable", "unreadable"."""
    if error.status is not None and error.status != 200:
        return f"status-{error.status}"
    return type(error).__name__.replace("Imds", "").lower() or "error"
