# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Receipts of approvals that IMDS accepted, because its document has no flag for them.

Each event has one small file. A folder that another user can write to is not used on Linux: a forged
receipt would prevent an approval. On Windows the folder's access control list has to prevent that.
"""

from __future__ import annotations

import hashlib
import json
import sys
from datetime import datetime
from typing import Any, Callable, Iterable

from .boot import boot_id
from .timestamps import as_utc_text

if sys.platform == "win32":
    from .windows_receipt_folder import ReceiptFolder, create_folder, default_folder, open_folder
else:
    from .posix_receipt_folder import ReceiptFolder, create_folder, default_folder, open_folder

__all__ = ["Receipts", "default_folder"]


def stamped_boot() -> str:
    """Return the boot that receipts of this system hold for; "" on Linux, where they hold for any boot.

    On Linux a reboot clears the folder of root. Windows has no such folder.
    """
    return boot_id() if sys.platform == "win32" else ""


class Receipts:
    """The receipts of this host's approvals at one endpoint.

    Args:
        folder: path of the folder; created with the first receipt.
        endpoint: base URL of the IMDS that accepted them.
        boot: returns the identity of this boot; receipts of another boot do not count. "" stands for any boot.
    """

    def __init__(self, folder: str, endpoint: str, boot: Callable[[], str] = stamped_boot) -> None:
        self._folder = folder
        self._endpoint = endpoint
        self._boot = boot

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
            with open_folder(self._folder) as folder:
                note = _read(self._name(event_id), folder)
        except OSError:
            return None
        if note is None or str(note.get("event_id", "")).casefold() != event_id.casefold():
            return None
        noted = note.get("not_before")
        if noted is not None and not_before is not None and noted != as_utc_text(not_before):
            return None
        if _is_of_another_boot(note, self._boot()):
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
        create_folder(self._folder)
        note = {"event_id": event_id, "approved_at": approved_at, "endpoint": self._endpoint}
        if not_before is not None:
            note["not_before"] = as_utc_text(not_before)
        boot = self._boot()
        if boot:
            note["boot"] = boot
        with open_folder(self._folder) as folder:
            folder.write(self._name(event_id), json.dumps(note))

    def prune(self, event_ids: Iterable[str]) -> None:
        """Remove the receipts of all other events and boots; ``event_ids`` are those of a complete document."""
        kept = {self._name(event_id) for event_id in event_ids}
        boot = self._boot()
        try:
            with open_folder(self._folder) as folder:
                for name in folder.names():
                    if not name.endswith(".json") or (name in kept and not boot):
                        continue
                    note = _read(name, folder)
                    if note is None or note.get("endpoint") != self._endpoint:
                        continue
                    if name not in kept or _is_of_another_boot(note, boot):
                        _remove(name, folder)
        except OSError:
            pass  # an unusable folder has no receipts

    def _name(self, event_id: str) -> str:
        # hashed, because an id may hold any characters
        identity = f"{self._endpoint}\n{event_id.casefold()}"
        return hashlib.sha256(identity.encode("utf-8", "backslashreplace")).hexdigest() + ".json"


def _is_of_another_boot(note: dict[str, Any], boot: str) -> bool:
    return bool(boot) and note.get("boot") != boot


def _read(name: str, folder: ReceiptFolder) -> dict[str, Any] | None:
    """Return the receipt in a file of the folder, or None if the file is missing or unreadable."""
    try:
        note = json.loads(folder.read(name))
    except (OSError, ValueError, RecursionError):
        return None
    return note if isinstance(note, dict) else None


def _remove(name: str, folder: ReceiptFolder) -> None:
    try:
        folder.remove(name)
    except OSError:
        pass  # the receipt of an event that is over has no effect
