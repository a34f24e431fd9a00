# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The note of a maintenance run on a host, which names the run that is responsible for the host.

The note exists from before the first prepare task until after the last recover task. It is written
atomically under a lock, and survives a reboot.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import typing as t
from datetime import datetime, timezone

from .azure_scheduled_events import durable_file

# of root
DEFAULT_FOLDER = "/var/lib/azure-scheduled-events/maintenance"
# of other users
USER_FOLDER = "~/.local/state/azure-scheduled-events/maintenance"
FILE_NAME = "note.json"

_WRITABLE_BY_OTHERS = 0o022
# seconds; a process holds the lock for milliseconds
_LOCK_TIMEOUT = 10.0
# the id in place of that of an unreadable note; no run has it
UNKNOWN_RUN = ""

Note = t.Dict[str, t.Any]


class NoteHeld(Exception):
    """Another run, whose note is ``note``, is responsible for the host."""

    def __init__(self, path: str, note: Note) -> None:
        super().__init__(describe_note(path, note))
        self.note = note


def default_folder() -> str:
    """Return the folder for notes of the user that runs this program."""
    return DEFAULT_FOLDER if os.geteuid() == 0 else os.path.expanduser(USER_FOLDER)


def describe_note(path: str, note: Note) -> str:
    """Return one sentence that names the run of the note."""
    if "damaged" in note:
        return f"{path}: the note cannot be read ({note['damaged']})"
    run = note["run"]
    return "{}: the note of run {}, process {} of {} on {}, updated {}".format(
        path,
        run["id"],
        run.get("pid"),
        run.get("user"),
        run.get("host"),
        note["updated"],
    )


def utc_text(moment: datetime) -> str:
    """Return the time as ISO 8601 in UTC with whole seconds."""
    return moment.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


class NoteFile:
    """The note of one host.

    All methods raise OSError if the folder or the file cannot be used.

    Args:
        folder: path of the folder; created with the first note.
        now: returns the current time, aware.
    """

    def __init__(self, folder: str, now: t.Callable[[], datetime] = lambda: datetime.now(timezone.utc)) -> None:
        self._folder = folder
        self._now = now
        self.path = os.path.join(folder, FILE_NAME)

    def read(self) -> Note | None:
        """Return the note with its ``age`` in seconds, or None; an unreadable note has ``damaged`` and no run."""
        try:
            with self._opened() as folder:
                return self._found(folder)
        except FileNotFoundError:
            return None

    def claim(
        self,
        run: t.Mapping[str, t.Any],
        events: t.Sequence[t.Mapping[str, t.Any]],
        expires: float,
        replaces: str | None = None,
        take_over: bool = False,
        write: bool = True,
    ) -> Note:
        """Make the run responsible for the host, and return the note.

        Args:
            run: the run; ``id`` identifies it.
            events: the events for which the host is prepared; those of the previous note are kept.
            expires: seconds without an update after which the note of another run counts as
                abandoned.
            replaces: id of a run that is known to have ended.
            take_over: whether to replace the note of any run.
            write: False to return the note without writing it.

        Raises:
            NoteHeld: another run is responsible for the host.
        """
        if not write:
            return self._next(self.read(), run, events, expires, replaces, take_over)
        os.makedirs(self._folder, mode=0o755, exist_ok=True)
        with self._locked() as folder:
            note = self._next(self._found(folder), run, events, expires, replaces, take_over)
            self._write(folder, note)
            return note

    def update(self, run_id: str, events: t.Sequence[t.Mapping[str, t.Any]] = ()) -> None:
        """Refresh the note and add events; do nothing if the note belongs to another run."""
        with self._locked() as folder:
            found = self._found(folder)
            if found is not None and run_of(found) == run_id:
                self._write(folder, dict(found, events=merged(found["events"], events), updated=utc_text(self._now())))

    def leave(self, run_id: str, reason: str) -> Note | None:
        """Release the host to any other run; return the note of another run, which remains unchanged, or None."""
        return self._end(run_id, lambda folder, note: self._write(folder, dict(note, held=False, left_because=reason)))

    def remove(self, run_id: str) -> Note | None:
        """Remove the note; return the note of another run, which remains, or None."""
        return self._end(run_id, lambda folder, dummy: durable_file.remove(FILE_NAME, folder))

    def _end(self, run_id: str, end: t.Callable[[int, Note], None]) -> Note | None:
        try:
            with self._locked() as folder:
                found = self._found(folder)
                if found is None or run_of(found) != run_id:
                    return found
                end(folder, found)
                return None
        except FileNotFoundError:
            return None

    def _next(
        self,
        found: Note | None,
        run: t.Mapping[str, t.Any],
        events: t.Sequence[t.Mapping[str, t.Any]],
        expires: float,
        replaces: str | None,
        take_over: bool,
    ) -> Note:
        now = utc_text(self._now())
        note: Note = {"version": 1, "run": dict(run), "earlier_runs": [], "written": now, "updated": now, "held": True}
        if found is None:
            return dict(note, events=merged((), events))
        earlier = run_of(found)
        if earlier == run["id"]:
            note["written"] = found["written"]
        elif found["held"] and not (take_over or replaces == earlier != UNKNOWN_RUN or abs(found["age"]) > expires):
            raise NoteHeld(self.path, found)
        # commands of these runs may still work on the host
        ended = [*found["earlier_runs"], earlier]
        note["earlier_runs"] = [name for name in dict.fromkeys(ended) if name not in (UNKNOWN_RUN, run["id"])]
        return dict(note, events=merged(found["events"], events))

    def _found(self, folder: int) -> Note | None:
        try:
            note = _checked(durable_file.read_json(FILE_NAME, folder))
            updated = datetime.strptime(note["updated"], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=timezone.utc)
        except FileNotFoundError:
            return None
        except ValueError as error:
            updated = datetime.fromtimestamp(os.stat(FILE_NAME, dir_fd=folder).st_mtime, timezone.utc)
            note = {"damaged": str(error), "held": True, "earlier_runs": [], "events": [], "updated": utc_text(updated)}
            note["written"] = note["updated"]
        note["age"] = round((self._now() - updated).total_seconds(), 1)
        return note

    def _write(self, folder: int, note: Note) -> None:
        kept = {key: value for key, value in note.items() if key != "age"}
        durable_file.write(FILE_NAME, json.dumps(kept, indent=1).encode("ascii"), mode=0o644, dir_fd=folder)

    @contextlib.contextmanager
    def _locked(self) -> t.Iterator[int]:
        with self._opened() as folder:
            if not durable_file.lock(folder, _LOCK_TIMEOUT):
                problem = f"another process has held the lock for {int(_LOCK_TIMEOUT)} seconds"
                raise OSError(errno.EBUSY, problem, self._folder)
            yield folder

    @contextlib.contextmanager
    def _opened(self) -> t.Iterator[int]:
        folder = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            found = os.fstat(folder)
            if found.st_uid not in (0, os.geteuid()) or found.st_mode & _WRITABLE_BY_OTHERS:
                raise PermissionError(errno.EPERM, "another user can write to the folder", self._folder)
            yield folder
        finally:
            os.close(folder)


def run_of(note: Note) -> str:
    """Return the id of the run that wrote the note, UNKNOWN_RUN if the note cannot be read."""
    return UNKNOWN_RUN if "damaged" in note else str(note["run"]["id"])


def merged(
    known: t.Iterable[t.Mapping[str, t.Any]], newer: t.Iterable[t.Mapping[str, t.Any]]
) -> list[dict[str, t.Any]]:
    """Return the events of both lists, one per id in any letter case; those of the newer list win.

    The time of a start that is known is kept, and the NotBefore of an event that has none any more.
    """
    events: dict[str, dict[str, t.Any]] = {}
    for event in [*known, *newer]:
        before = events.get(str(event["event_id"]).casefold(), {})
        kept = {name: before[name] for name in ("started", "not_before") if before.get(name) and not event.get(name)}
        events[str(event["event_id"]).casefold()] = {**event, **kept}
    return list(events.values())


def _checked(note: t.Any) -> Note:
    """Return the data if it is a note, else raise ValueError."""
    shape = {"run": dict, "earlier_runs": list, "written": str, "updated": str, "held": bool, "events": list}
    if not isinstance(note, dict):
        raise ValueError("not a JSON object")
    for key, kind in shape.items():
        if not isinstance(note.get(key), kind):
            raise ValueError(f"the member {key} is missing or has a wrong type")
    if not note["run"].get("id") or not all(
        isinstance(event, dict) and isinstance(event.get("event_id"), str) for event in note["events"]
    ):
        raise ValueError("the run or an event has no id")
    return note
