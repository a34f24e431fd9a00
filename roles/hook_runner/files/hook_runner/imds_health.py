# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Tracks IMDS availability and logs transitions rather than single failures."""

from __future__ import annotations

import collections
import logging
from datetime import datetime
from typing import Any

from azure_scheduled_events.document import EventDocument
from azure_scheduled_events.errors import ImdsError
from azure_scheduled_events.timestamps import as_utc_text
from hook_runner.log import NOTICE, with_fields
from hook_runner.records import ACCEPTED

log = logging.getLogger(__name__)


class ImdsHealth:
    """The availability of IMDS.

    Attributes:
        last_good: time of the last good document, by the server's clock; None before the first. The poller sets it
            for a document that it does not deliver.
        error: the present error, or "".
        failing_since: the time when polls began to fail, or None.
        errors: the number of failed polls, by kind.
        approvals: the number of answers to approvals: ACCEPTED, or the kind of the error.
        incomplete_since: the time since which documents have unreadable entries, or None. Until then
            the daemon takes no event for over, and an operator has to act.
    """

    def __init__(self) -> None:
        self.last_good: datetime | None = None
        self.error = ""
        self.failing_since: datetime | None = None
        self.errors: collections.Counter[str] = collections.Counter()
        self.approvals: collections.Counter[str] = collections.Counter()
        self.incomplete_since: datetime | None = None
        # of the present outage
        self._kinds: set[str] = set()
        self._alarmed = False
        self._nameless = ""
        self._warned: tuple[str, ...] = ()

    @property
    def is_ok(self) -> bool:
        """Whether the latest poll brought a good document."""
        return self.last_good is not None and not self.error

    def poll_succeeded(self, document: EventDocument, now: datetime) -> None:
        """Record a good document.

        The log gets a line for the first one after the start or after a failure, for each new warning of a
        document, and when documents begin to have unreadable entries.
        """
        if self.error:
            seconds = (now - self.failing_since).total_seconds() if self.failing_since else 0.0
            log.log(NOTICE, "IMDS answers again, after %.0f s", seconds)
        elif self.last_good is None:
            log.info("IMDS answers: %s events", len(document.events))
        self.last_good = now
        self.error, self.failing_since, self._alarmed = "", None, False
        self._kinds.clear()
        for warning in document.warnings:
            if warning not in self._warned:
                log.warning("IMDS: the document has an error: %s", warning)
        self._warned = document.warnings
        if document.complete:
            self.incomplete_since = None
        elif self.incomplete_since is None:
            self.incomplete_since = now
            log.error("IMDS: the document has unreadable entries; until it has none, no event is taken for over")

    def poll_failed(self, error: ImdsError, outage: bool, now: datetime) -> None:
        """Record a failed poll; ``outage``: whether it is worth an alarm.

        The log gets in each outage one warning for each kind of error, and one error once polls have failed for 60 s.
        """
        kind = kind_of(error)
        self.errors[kind] += 1
        self.error = str(error)
        if self.failing_since is None:
            self.failing_since = now
        if kind not in self._kinds:
            self._kinds.add(kind)
            log.warning(
                "IMDS gives no good answer; events keep their state: %s",
                error,
                extra=with_fields(azure_imds_error=kind),
            )
        if outage and not self._alarmed and (now - self.failing_since).total_seconds() >= 60:
            self._alarmed = True
            since = as_utc_text(self.failing_since)
            log.error(
                "IMDS: the known events are stale since %s: %s", since, error, extra=with_fields(azure_imds_error=kind)
            )

    def approval_answered(self, error: ImdsError | None) -> None:
        """Count an answer to an approval; ``error``: None if IMDS accepted it."""
        self.approvals[ACCEPTED if error is None else kind_of(error)] += 1

    def name_unavailable(self, reason: str) -> None:
        """Record that IMDS did not return this VM's name; the log gets each new reason, except in an outage."""
        if reason != self._nameless and not self.error:
            self._nameless = reason
            text = (
                "this VM's resource name is not known yet: the daemon does nothing about new events, and requests"
                " the name again; or set resource_name: %s"
            )
            log.warning(text, reason)

    def as_data(self) -> dict[str, Any]:
        """Return the state for `status`, as JSON values."""
        return {
            "ok": self.is_ok,
            "last_good_poll": None if self.last_good is None else as_utc_text(self.last_good),
            "stale_since": None if self.failing_since is None else as_utc_text(self.failing_since),
            "error": self.error or None,
            "incomplete_since": None if self.incomplete_since is None else as_utc_text(self.incomplete_since),
            "errors": dict(self.errors),
        }


def kind_of(error: ImdsError) -> str:
    """Return a short name for an error: "status-503", "unreachable", "unreadable"."""
    if error.status is not None and error.status != 200:
        return f"status-{error.status}"
    return type(error).__name__.replace("Imds", "").lower() or "error"
