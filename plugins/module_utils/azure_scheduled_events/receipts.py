# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Notes of approvals that IMDS accepted, since its document has no flag for them (spec 1.5, 2.6).

One small file per event, below /run by default: gone after a reboot, when approving again is harmless.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from datetime import datetime
from typing import Any, Iterable, Optional

from .timestamps import as_utc_text

DEFAULT_FOLDER = "/run/azure-scheduled-events/approvals"


class Receipts:
    """The approvals that this host has given at one endpoint.

    Args:
        folder: where the files are; made when the first is written.
        endpoint: base URL of the IMDS that accepted them.
    """

    def __init__(self, folder: str, endpoint: str) -> None:
        self._folder = folder
        self._endpoint = endpoint

    def find(self, event_id: str, not_before: Optional[datetime] = None) -> Optional[str]:
        """When the event was approved, in ISO 8601, or None. What cannot be read counts as no receipt.

        not_before: of the event as it is now. A receipt with another one does not count: Azure uses an id again for
        another occurrence, and approving an event twice does no harm. One without it counts.
        """
        note = self._read(self._path(event_id))
        if note is None or str(note.get("event_id", "")).casefold() != event_id.casefold():
            return None
        noted = note.get("not_before")
        if noted is not None and not_before is not None and noted != as_utc_text(not_before):
            return None
        return str(note.get("approved_at", ""))

    def write(self, event_id: str, approved_at: str, not_before: Optional[datetime] = None) -> None:
        """Note an accepted approval, whole or not at all. Raises OSError where that is not possible.

        approved_at: in ISO 8601; not_before: of the event as it was approved, or None where unknown.
        """
        os.makedirs(self._folder, mode=0o755, exist_ok=True)
        note = {"event_id": event_id, "approved_at": approved_at, "endpoint": self._endpoint}
        if not_before is not None:
            note["not_before"] = as_utc_text(not_before)
        handle, draft = tempfile.mkstemp(dir=self._folder, prefix=".draft-")
        try:
            with os.fdopen(handle, "w", encoding="ascii") as file:
                json.dump(note, file)
            os.chmod(draft, 0o644)
            os.replace(draft, self._path(event_id))
        except OSError:
            os.unlink(draft)
            raise

    def forget_all_but(self, event_ids: Iterable[str]) -> None:
        """Remove the receipts of events that are over; only a complete document says which those are."""
        kept = {self._path(event_id) for event_id in event_ids}
        try:
            paths = [os.path.join(self._folder, name) for name in os.listdir(self._folder) if name.endswith(".json")]
        except OSError:
            return
        for path in paths:
            note = None if path in kept else self._read(path)
            if note is not None and note.get("endpoint") == self._endpoint:
                try:
                    os.unlink(path)
                except OSError:
                    pass  # it goes with the next reboot

    def _path(self, event_id: str) -> str:
        # ids come from outside and may hold anything, so they do not become file names themselves
        identity = "%s\n%s" % (self._endpoint, event_id.casefold())
        return os.path.join(self._folder, hashlib.sha256(identity.encode("utf-8", "backslashreplace")).hexdigest() + ".json")

    def _read(self, path: str) -> Optional[dict[str, Any]]:
        try:
            with open(path, encoding="ascii") as file:
                note = json.load(file)
        except (OSError, ValueError, RecursionError):
            return None
        return note if isinstance(note, dict) else None
