# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Receipts of approvals that IMDS accepted, because its document has no flag for them.

Each event has one small file. A folder that another user can write to is not used: a forged receipt
would prevent an approval.
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

# of root; a reboot clears it, and approving again afterwards has no effect
DEFAULT_FOLDER = "/run/azure-scheduled-events/approvals"
# of other users; /run/user is cleared at the end of the user's last session, before the next run of
# a playbook
USER_FOLDER = "~/.local/state/azure-scheduled-events/approvals"

_WRITABLE_BY_OTHERS = 0o022


def default_folder() -> str:
    """Return the folder for receipts of the current user; that of root if the user has no home directory."""
    own = os.path.expanduser(USER_FOLDER)
    return own if os.geteuid() != 0 and os.path.isabs(own) else DEFAULT_FOLDER


class Receipts:
    """The receipts of this host's approvals at one endpoint.

    Args:
        folder: path of the folder; created with the first receipt.
        endpoint: base URL of the IMDS that accepted them.
    """

    def __init__(self, folder: str, endpoint: str) -> None:
        self._folder = folder
        self._endpoint = endpoint

    def find(self, event_id: str, not_before: datetime | None = None) -> str | None:
        """Return when the event was approved.

        Args:
            event_id: in any letter case.
            not_before: of the event as it is now, or None. A receipt with another NotBefore
                is ignored: Azure reuses an id for another occurrence, and a second approval has no effect.

        Returns:
            The time in ISO 8601; None if there is no readable receipt.
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
        """Write the receipt of an accepted approval atomically.

        Args:
            event_id: of the event.
            approved_at: the time in ISO 8601.
            not_before: of the event as it was approved, or None where unknown.

        Raises:
            OSError: the receipt cannot be written.
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
        """Remove the receipts of all other events; ``event_ids`` are those of a complete document."""
        kept = {self._name(event_id) for event_id in event_ids}
        try:
            with self._opened() as folder:
                for name in os.listdir(folder):
                    note = _read(name, folder) if name.endswith(".json") and name not in kept else None
                    if note is not None and note.get("endpoint") == self._endpoint:
                        _remove(name, folder)
        except OSError:
            pass  # an unusable folder has no receipts

    @contextlib.contextmanager
    def _opened(self) -> Iterator[int]:
        """Yield a descriptor of the folder; raise OSError if it is missing or another user can write to it."""
        folder = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            found = os.fstat(folder)
            if found.st_uid not in (0, os.geteuid()) or found.st_mode & _WRITABLE_BY_OTHERS:
                raise PermissionError(errno.EPERM, "another user can write to the folder", self._folder)
            yield folder
        finally:
            os.close(folder)

    def _name(self, event_id: str) -> str:
        # hashed, because an id may hold any characters
        identity = f"{self._endpoint}\n{event_id.casefold()}"
        return hashlib.sha256(identity.encode("utf-8", "backslashreplace")).hexdigest() + ".json"


def _read(name: str, folder: int) -> dict[str, Any] | None:
    """Return the receipt in a file of the folder, or None if the file is missing or unreadable."""
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
        pass  # the receipt of an event that is over has no effect
