# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Notes of approvals that IMDS accepted, since its document has no flag for them.

One small file per event. A folder that another user can write to is not used: a forged receipt
would keep an approval back.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
from datetime import datetime
from typing import Any, Iterable, Iterator

from .timestamps import as_utc_text

# of root, gone after a reboot, when approving again is harmless
DEFAULT_FOLDER = "/run/azure-scheduled-events/approvals"
# of each other user; a folder below /run/user would be gone with the user's last session, and with
# the next run of a playbook
USER_FOLDER = "~/.local/state/azure-scheduled-events/approvals"

_WRITABLE_BY_OTHERS = 0o022


def default_folder() -> str:
    """The folder for receipts of the user that runs this program; one that it cannot write to if it has no home directory."""
    own = os.path.expanduser(USER_FOLDER)
    return own if os.geteuid() != 0 and os.path.isabs(own) else DEFAULT_FOLDER


class Receipts:
    """The approvals that this host has given at one endpoint.

    Args:
        folder: where the files are; made when the first is written.
        endpoint: base URL of the IMDS that accepted them.
    """

    def __init__(self, folder: str, endpoint: str) -> None:
        self._folder = folder
        self._endpoint = endpoint

    def find(self, event_id: str, not_before: datetime | None = None) -> str | None:
        """When the event was approved, in ISO 8601, or None. What cannot be read counts as no receipt.

        not_before: of the event as it is now. A receipt with another one does not count: Azure uses
        an id again for another occurrence, and approving an event twice does no harm. One without
        it counts.
        """
        try:
            with self._opened() as folder:
                note = _read(self._name(event_id), folder)
        except OSError:
            return None
        if note is None or str(note.get("event_id", "")).casefold() != event_id.casefold():
            return None
        noted = note.get("not_before")
        if noted is not None and not_before is not None and noted != as_utc_text(not_before):
            return None
        return str(note.get("approved_at", ""))

    def write(self, event_id: str, approved_at: str, not_before: datetime | None = None) -> None:
        """Note an accepted approval, whole or not at all. Raises OSError where that is not possible.

        approved_at: in ISO 8601; not_before: of the event as it was approved, or None where
            unknown.
        """
        os.makedirs(self._folder, mode=0o755, exist_ok=True)
        note = {"event_id": event_id, "approved_at": approved_at, "endpoint": self._endpoint}
        if not_before is not None:
            note["not_before"] = as_utc_text(not_before)
        with self._opened() as folder:
            draft = ".draft-" + os.urandom(8).hex()
            try:
                with open(
                    os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644, dir_fd=folder), "w", encoding="ascii"
                ) as file:
                    json.dump(note, file)
                os.replace(draft, self._name(event_id), src_dir_fd=folder, dst_dir_fd=folder)
            except OSError:
                _remove(draft, folder)
                raise

    def prune(self, event_ids: Iterable[str]) -> None:
        """Remove the receipts of events that are over; only a complete document says which those are."""
        kept = {self._name(event_id) for event_id in event_ids}
        try:
            with self._opened() as folder:
                for name in os.listdir(folder):
                    note = _read(name, folder) if name.endswith(".json") and name not in kept else None
                    if note is not None and note.get("endpoint") == self._endpoint:
                        _remove(name, folder)
        except OSError:
            pass  # a folder that cannot be used has nothing to forget

    @contextlib.contextmanager
    def _opened(self) -> Iterator[int]:
        """The folder as a descriptor. Raises OSError where it is missing, or where another user can write to it."""
        folder = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            found = os.fstat(folder)
            if found.st_uid not in (0, os.geteuid()) or found.st_mode & _WRITABLE_BY_OTHERS:
                raise PermissionError(errno.EPERM, "another user can write to the folder", self._folder)
            yield folder
        finally:
            os.close(folder)

    def _name(self, event_id: str) -> str:
        # ids come from outside and may hold anything, so they do not become file names themselves
        identity = f"{self._endpoint}\n{event_id.casefold()}"
        return hashlib.sha256(identity.encode("utf-8", "backslashreplace")).hexdigest() + ".json"


def _read(name: str, folder: int) -> dict[str, Any] | None:
    """The receipt in a file of the folder, or None where there is none that can be read."""
    try:
        with open(os.open(name, os.O_RDONLY, dir_fd=folder), encoding="ascii") as file:
            note = json.load(file)
    except (OSError, ValueError, RecursionError):
        return None
    return note if isinstance(note, dict) else None


def _remove(name: str, folder: int) -> None:
    try:
        os.unlink(name, dir_fd=folder)
    except OSError:
        pass  # the receipt of an event that is over does no harm
