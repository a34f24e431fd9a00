# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""The record of what this minion has prepared: for which events, in which boot, how far. The truth for approval and recovery.

One file, mode 0600, in a folder 0700, replaced as a whole. It is there as long as something has to
be recovered.
"""

from __future__ import annotations

import contextlib
import os
from typing import Any, Mapping, NamedTuple

from azure_events_watch import state_file

PREPARING = "preparing"
PREPARED = "prepared"
PREPARE_FAILED = "prepare_failed"
RECOVERING = "recovering"
RECOVER_FAILED = "recover_failed"
PHASES = (PREPARING, PREPARED, PREPARE_FAILED, RECOVERING, RECOVER_FAILED)

# the id under which a preparation by hand is recorded
BY_HAND = ""

_FILE = "prepared.json"
_BOOT_ID = "/proc/sys/kernel/random/boot_id"


class Reason(NamedTuple):
    """One event that the minion was prepared for; ``event_id`` is BY_HAND for a preparation by hand.

    ``over`` is True once two good documents in a row did not list the event any more, while another
    reason lasts.
    """

    event_id: str
    event_type: str = ""
    resources: tuple[str, ...] = ()
    over: bool = False

    @property
    def key(self) -> str:
        return self.event_id.casefold()


class Record(NamedTuple):
    """What was done to this minion, and for which reasons. A minion is prepared once, however many reasons there are.

    Attributes:
        phase: one of PHASES.
        boot: id of the boot in which that phase began; "" where the system has none.
        steps_done: how many steps of the list with that digest have succeeded in this phase.
        digest: of the list of steps.
        prepared_at: when the preparation succeeded, ISO 8601, or None.
        why_not: why a phase has failed; "" otherwise.
        reasons: in the order in which they came.
    """

    phase: str
    boot: str
    steps_done: int
    digest: str
    prepared_at: str | None
    why_not: str
    reasons: tuple[Reason, ...]

    def find(self, event_id: str) -> Reason | None:
        """The reason with that id in any letter case, or None."""
        key = event_id.casefold()
        return next((reason for reason in self.reasons if reason.key == key), None)

    def is_prepared(self, boot: str) -> bool:
        """Return True if the preparation succeeded in that boot, which a system without ids of boots never has."""
        return self.phase == PREPARED and self.boot != "" and self.boot == boot

    def can_resume_in(self, boot: str, digest: str) -> bool:
        """Return True if the phase began in that boot, with that list of steps; those that have succeeded need not run again."""
        return self.boot != "" and self.boot == boot and self.digest == digest

    def with_reason(self, reason: Reason) -> Record:
        """The record with that reason, in place of an earlier one for the same event."""
        return self._replace(reasons=(*(one for one in self.reasons if one.key != reason.key), reason))

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values, exactly."""
        return dict(
            self._asdict(), reasons=[dict(one._asdict(), resources=list(one.resources)) for one in self.reasons]
        )


def record_from_json(data: Mapping[str, Any]) -> Record:
    """The record of a file's content. Raises ValueError for anything else."""
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
    """The file below the minion's cachedir."""

    def __init__(self, cachedir: str) -> None:
        self._cachedir = cachedir
        self.path = os.path.join(state_file.folder(cachedir), _FILE)

    def read(self) -> Record | None:
        """The record, or None where nothing is prepared. Raises ValueError for a damaged file, OSError for one that cannot be read."""
        data = state_file.load(self.path)
        try:
            return None if data is None else record_from_json(data)
        except ValueError as error:
            raise ValueError(f"{self.path} is damaged: {error}") from None

    def write(self, record: Record) -> None:
        """Replace the file. Raises OSError; the old file stays then."""
        state_file.ensure_directory(self._cachedir)
        state_file.replace(self.path, record.to_json())

    def remove(self) -> None:
        """Remove the file; nothing is prepared any more. Raises OSError."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)

    def quarantine(self) -> str:
        """Rename a damaged file; returns its new path. Raises OSError."""
        aside = self.path + ".damaged"
        os.replace(self.path, aside)
        return aside


def boot_id() -> str:
    """The id of this boot of the system; "" where the system has none."""
    try:
        with open(_BOOT_ID, encoding="ascii") as file:
            return file.read().strip()
    except (OSError, ValueError):
        return ""
