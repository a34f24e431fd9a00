# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""The record of this minion's preparation: for which events, in which boot, how many steps.

Approval and recovery rely on it. It is one file, replaced as a whole, that exists as long as a recovery
is pending. On Linux it has the mode 0600, in a folder with the mode 0700.
"""

from __future__ import annotations

import contextlib
import os
from typing import Any, Iterable, Mapping, NamedTuple

from azure_events_watch import durable_file, state_file
from azure_scheduled_events.document import ScheduledEvent
from azure_scheduled_events.urgency import counts_for

PREPARING = "preparing"
PREPARED = "prepared"
PREPARE_FAILED = "prepare_failed"
RECOVERING = "recovering"
RECOVER_FAILED = "recover_failed"
PHASES = (PREPARING, PREPARED, PREPARE_FAILED, RECOVERING, RECOVER_FAILED)

# event_id of a preparation by hand
BY_HAND = ""

_FILE = "prepared.json"
# name of the record while a recovery runs that could not write it
_UNWRITTEN_FILE = "recovering.json"
_GONE_FILE = "gone.json"
# events that are remembered after the recovery from them
_MOST_GONE = 1000


class Reason(NamedTuple):
    """One event that the minion was prepared for; ``event_id`` is BY_HAND without an event.

    ``over`` is True if a recovery found that the event is over, and another reason is not. ``returned`` is True
    if Azure listed the event again after it was over.
    """

    event_id: str
    event_type: str = ""
    resources: tuple[str, ...] = ()
    over: bool = False
    returned: bool = False

    def seen(self, over: bool) -> Reason:
        """Return the reason after a recovery found that the event is over, or not."""
        return self._replace(over=over, returned=self.returned or (self.over and not over))

    @property
    def key(self) -> str:
        """Return the event's ID with folded letter case."""
        return self.event_id.casefold()

    @property
    def kind(self) -> str | None:
        """Return the type of the event, or None without an event."""
        return None if self.key == BY_HAND else self.event_type


class Record(NamedTuple):
    """The state of this minion, and the reasons for it.

    Attributes:
        phase: one of PHASES.
        boot: id of the boot in which the phase began; "" if the system has none.
        steps_done: number of steps in the list with that digest that have succeeded in the phase.
        digest: of the list of steps, in a preparation also of the type of event that they run for.
        prepared_at: when the last preparation succeeded, ISO 8601, or None.
        why_not: why the phase has failed, or "".
        reasons: the oldest first.
        kinds: `Reason.kind` of each preparation that has succeeded in this boot, since the last recovery, unless
            a later one counts for it.
    """

    phase: str
    boot: str
    steps_done: int
    digest: str
    prepared_at: str | None
    why_not: str
    reasons: tuple[Reason, ...]
    kinds: tuple[str | None, ...] = ()

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

    @property
    def returned(self) -> frozenset[str]:
        """Return the keys of the events that came back after they were over, and are not over again."""
        return frozenset(reason.key for reason in self.reasons if reason.returned and not reason.over)

    def covers(self, reason: Reason, boot: str) -> bool:
        """Return True if `is_prepared`, and the event is among the reasons and not over."""
        earlier = self.find(reason.key)
        return earlier is not None and not earlier.over and self.is_prepared(reason, boot)

    def is_prepared(self, reason: Reason, boot: str) -> bool:
        """Return True if a preparation that counts for the reason succeeded in that boot.

        Never on a system without boot ids.
        """
        return self.boot != "" and self.boot == boot and self.state_of(reason) == PREPARED

    def state_of(self, reason: Reason) -> str:
        """Return one of PHASES for one reason."""
        if any(_counts_for(kind, reason.kind) for kind in self.kinds):
            return PREPARED
        # the phase of a preparation that does not count for it
        return PREPARE_FAILED if self.phase == PREPARED else self.phase

    def can_resume_in(self, boot: str, digest: str) -> bool:
        """Return True if the phase began in that boot with that list of steps.

        Steps that have succeeded then need not run again.
        """
        return self.boot != "" and self.boot == boot and self.digest == digest

    def with_reason(self, reason: Reason) -> Record:
        """Return the record with that reason, which replaces an earlier one for the same event."""
        earlier = self.find(reason.key)
        if earlier is not None:
            reason = reason._replace(returned=reason.returned or earlier.seen(over=False).returned)
        return self._replace(reasons=(*(one for one in self.reasons if one.key != reason.key), reason))

    def with_success(self, kind: str | None, at: str) -> Record:
        """Return the record after a preparation of this kind has succeeded."""
        kinds = (*(one for one in self.kinds if not _counts_for(kind, one)), kind)
        return self._replace(phase=PREPARED, prepared_at=at, kinds=kinds)

    def distrusted(self) -> Record:
        """Return the record after the begin of a recovery of which nothing is known."""
        return self._replace(phase=RECOVERING, steps_done=0, kinds=())

    def to_json(self) -> dict[str, Any]:
        """Return the record as plain JSON values."""
        return dict(
            self._asdict(), reasons=[dict(one._asdict(), resources=list(one.resources)) for one in self.reasons]
        )


def _counts_for(done: str | None, needed: str | None) -> bool:
    """Return True if one preparation counts for another one; one by hand counts for all, and all count for it."""
    return done is None or needed is None or counts_for(done, needed)


def record_from_json(data: Mapping[str, Any]) -> Record:
    """Return the record of a file's content; raise ValueError for other content."""
    try:
        reasons = tuple(
            Reason(
                str(item["event_id"]),
                str(item["event_type"]),
                tuple(map(str, item["resources"])),
                item["over"] is True,
                item["returned"] is True,
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
            tuple(None if kind is None else str(kind) for kind in data["kinds"]),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{type(error).__name__} {error}") from None


class RecordFile:
    """The record's file below the minion's cachedir, and the one with the events that the minion recovered from."""

    def __init__(self, cachedir: str) -> None:
        self.path = os.path.join(state_file.folder(cachedir), _FILE)
        self._unwritten_path = os.path.join(state_file.folder(cachedir), _UNWRITTEN_FILE)
        self._gone_path = os.path.join(state_file.folder(cachedir), _GONE_FILE)

    def read(self) -> Record | None:
        """Return the record, or None if nothing is prepared.

        Raises:
            ValueError: the file is damaged.
            OSError: it cannot be read now.
        """
        found = self._read(self.path)
        if found is not None:
            return found
        unwritten = self._read(self._unwritten_path)
        return None if unwritten is None else unwritten.distrusted()

    def version(self) -> tuple[tuple[int, int, int] | None, ...]:
        """Return a value that differs after each change of the record."""
        return tuple(map(_version_of, (self.path, self._unwritten_path)))

    def write(self, record: Record) -> None:
        """Replace the file; after an OSError the old file remains."""
        state_file.write(self.path, record.to_json())
        durable_file.remove(self._unwritten_path)

    def distrust(self) -> None:
        """Rename the file, for which a full disk has space: from now on `read` returns it as `Record.distrusted`."""
        # an earlier recovery may have renamed it
        with contextlib.suppress(FileNotFoundError):
            durable_file.retried(lambda: os.replace(self.path, self._unwritten_path))
            durable_file.sync_folder(os.path.dirname(self.path))

    def remove(self) -> None:
        """Remove the file: nothing is prepared any more."""
        durable_file.remove(self._unwritten_path)
        durable_file.remove(self.path)

    def _read(self, path: str) -> Record | None:
        data = state_file.load(path)
        try:
            return None if data is None else record_from_json(data)
        except ValueError as error:
            raise ValueError(f"{path} is damaged: {error}") from None

    def gone(self) -> tuple[str, ...]:
        """Return the keys of the latest events that the minion recovered from; none of a damaged file.

        It raises OSError if the file cannot be read now.
        """
        try:
            data = state_file.load(self._gone_path)
        except ValueError:
            data = None
        found = None if data is None else data.get("gone")
        return tuple(map(str, found)) if isinstance(found, list) else ()

    def add_gone(self, events: Iterable[ScheduledEvent]) -> None:
        """Remember events; raise OSError if the file cannot be read or written."""
        keys = dict.fromkeys((*self.gone(), *(event.key for event in events)))
        state_file.write(self._gone_path, {"gone": list(keys)[-_MOST_GONE:]})

    def quarantine(self, replacement: Record) -> str:
        """Replace a damaged file by a record, and return the path of the copy of the damaged one.

        A kill or a full disk leaves one of the two at the path; otherwise nothing would be prepared any more.
        """
        damaged = self.path if os.path.lexists(self.path) else self._unwritten_path
        aside = damaged + ".damaged"
        durable_file.write(aside, durable_file.read(damaged))
        self.write(replacement)
        return aside


def _version_of(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino, found.st_size
