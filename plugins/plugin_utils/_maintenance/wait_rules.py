# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When a maintenance run stops waiting for a host whose events are not over."""

from __future__ import annotations

import typing as t
from datetime import datetime, timezone

from ...module_utils.azure_scheduled_events.printable import printable
from .outcomes import Event, is_removed

_FORMAT = "%Y-%m-%dT%H:%M:%S.%fZ"


class WaitRules:
    """The rules for one host, from the variables of the role.

    ``removed_after`` is in seconds without an answer, after which a host counts as removed if an event explains it.
    ``now`` returns the time by the controller's clock, aware.
    """

    def __init__(
        self,
        variables: t.Mapping[str, t.Any],
        removed_after: float,
        now: t.Callable[[], datetime] = lambda: datetime.now(timezone.utc),
    ) -> None:
        plan = variables.get("maintenance__plan") or {}
        own = plan.get("hosts", {}).get(variables.get("inventory_hostname"), {})
        note = (variables.get("maintenance__note") or {}).get("note") or {}
        self._approved: t.Collection[str] = (variables.get("maintenance__decided") or {}).get("approved", ())
        self._removed_after = removed_after
        self._now = now
        self._yields_at: str | None = plan.get("yields_at")
        self._waiting = [event for event in plan.get("events", ()) if event["action"] == "wait"]
        self._starts_at: dict[str, str] = own.get("starts_at", {})
        self._events: list[Event] = note.get("events", [])

    def patience(self, seconds: float) -> float:
        """Return how long to wait: ``seconds``, or less if a waiting event has to be prepared for before."""
        if self._yields_at is None:
            return seconds
        end = datetime.strptime(self._yields_at, _FORMAT).replace(tzinfo=timezone.utc)
        return max(0.0, min(seconds, (end - self._now()).total_seconds()))

    def has_removed(self, unreachable: float, events: t.Sequence[Event]) -> bool:
        """Return True if the host counts as removed by Azure.

        ``unreachable`` is in seconds since the host answered. ``events`` are those of the host as they were listed
        last; empty for those of its note.
        """
        if unreachable < self._removed_after:
            return False
        now = self._now().strftime(_FORMAT)
        return is_removed(events or self._events, self._approved, self._starts_at, now)

    def continues_because(self) -> str:
        """Return why the run ends the wait before its patience is over."""
        names = printable(", ".join(f"{event['event_type']} {event['event_id']}" for event in self._waiting))
        return f"the next run continues with the host, so that it can prepare for {names} in time"
