# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""The record of this minion's preparation: for which events, in which boot, how many steps.

Approval and recovery rely on it. It is one file, replaced as a whole, that exists as long as a recovery
is pending. On Linux it has the mode 0600, in a folder with the mode 0700.
"""

from __future__ import annotations

import os
from typing import Any, Mapping, NamedTuple

from azure_events_watch import durable_file, state_file
from azure_scheduled_events.document import ScheduledEvent

PREPARING = "preparing"
PREPARED = "prepared"
PREPARE_FAILED = "prepare_failed"
RECOVERING = "recovering"
RECOVER_FAILED = "recover_failed"
PHASES = (PREPARING, PREPARED, PREPARE_FAILED, RECOVERING, RECOVER_FAILED)

# event_id of a preparation by hand
BY_HAND = ""

_FILE = "prepared.json"


class Reason(NamedTuple):
    """One event that the minion was prepared for; ``event_id`` is BY_HAND without an event.

    ``over`` is True if a recovery found that the event is over, and another reason is not.
    """

    event_id: str
    event_type: str = ""
    resources: tuple[str, ...] = ()
    over: bool = False

    @property
    def key(self) -> str:
        """Return the event's ID with folded letter case."""
        return self.event_id.casefold()


class Record(NamedTuple):
    """The state of this minion, and the reasons for it. It is prepared once for all reasons.

    Attributes:
        phase: one of PHASES.
        boot: id of the boot in which the phase began; "" if the system has none.
        steps_done: number of steps in the list with that digest that have succeeded in the phase.
        digest: of the list of steps.
        prepared_at: when the preparation succeeded, ISO 8601, or None.
        why_not: why the phase has failed, or "".
        reasons: the oldest first.
    """

    phase: str
    boot: str
    steps_done: int
    digest: str
    prepared_at: str | None
    why_not: str
    reasons: tuple[Reason, ...]

    def find(self, event_id: str) -> Reason | None:
        """Return the reason with that event ID in any letter case, or None."""
        key = event_id.casefold()
        return next((reason for reason in self.reasons if reason.key == key), None)

    @property
    def events(self) -> tuple[ScheduledEvent, ...]:
        """Return the events among the reasons."""
        return tuple(
            ScheduledEvent(reason.event_id, reason.event_type, "", reason.resources, None, None, None, None, None)
            for reason in self.reasons
            if reason.key != BY_HAND
        )

    def is_prepared(self, boot: str) -> bool:
        """Return True if the preparation succeeded in that boot; never on a system without boot ids."""
        return self.phase == PREPARED and self.boot != "" and self.boot == boot

    def can_resume_in(self, boot: str, digest: str) -> bool:
        """Return True if the phase began in that boot with that list of steps.

        Steps that have succeeded then need not run again.
        """
        return self.boot != "" and self.boot == boot and self.digest == digest

    def with_reason(self, reason: Reason) -> Record:
        """Return the record with that reason, which replaces an earlier one for the same event."""
        return self._replace(reasons=(*(one for one in self.reasons if one.key != reason.key), reason))

    def to_json(self) -> dict[str, Any]:
        """Return the record as plain JSON values."""
        return dict(
            self._asdict(), reasons=[dict(one._asdict(), resources=list(one.resources)) for one in self.reasons]
        )


def record_from_json(data: Mapping[str, Any]) -> Record:
    """Return the record of a file's content; raise ValueError for other content."""
    try:
        reasons = tuple(
            Reason(
                str(item["event_id"]), str(item["event_type"]), tuple(map(str, item["resources"])), item["over"] is True
            )
            for item in data["reasons"]
        )
        steps_done = data["steps_done"]
        if data["phase"] not in PHASES or not isinstance(steps_done, int) or steps_done < 0 or not reasons:
            raise ValueError(f"phase {data['phase']!r}, {steps_done!r} steps, {len(reasons)} reasons")
        prepared_at = data["prepared_at"]
        return Record(
            data["phase"],
            str(data["boot"]),
            steps_done,
            str(data["digest"]),
            None if prepared_at is None else str(prepared_at),
            str(data["why_not"]),
            reasons,
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{type(error).__name__} {error}") from None


class RecordFile:
    """The record's file below the minion's cachedir."""

    def __init__(self, cachedir: str) -> None:
        self.path = os.path.join(state_file.folder(cachedir), _FILE)

    def read(self) -> Record | None:
        """Return the record, or None if nothing is prepared; raise ValueError for a damaged file."""
        data = state_file.load(self.path)
        try:
            return None if data is None else record_from_json(data)
        except ValueError as error:
            raise ValueError(f"{self.path} is damaged: {error}") from None

    def write(self, record: Record) -> None:
        """Replace the file; after an OSError the old file remains."""
        state_file.write(self.path, record.to_json())

    def remove(self) -> None:
        """Remove the file: nothing is prepared any more."""
        durable_file.remove(self.path)

    def quarantine(self) -> str:
        """Rename a damaged file, and return its new path."""
        return durable_file.set_aside(self.path)
