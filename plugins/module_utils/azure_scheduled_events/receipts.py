# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Receipts of the approvals that IMDS accepted in this boot, because its document has no flag for them.

One file has all of a folder. A folder that another user can write to is not used on Linux: a forged receipt would
prevent an approval. On Windows the folder's access control list has to prevent that.
"""

from __future__ import annotations

import errno
import json
import os
import sys
from datetime import datetime
from typing import Callable

from . import durable_file
from .boot import boot_id
from .timestamps import as_utc_text

# of root
DEFAULT_FOLDER = "/run/azure-scheduled-events/approvals"
# of other users; /run/user is cleared at the end of the user's last session, before the next run of a playbook
USER_FOLDER = "~/.local/state/azure-scheduled-events/approvals"

_WRITABLE_BY_OTHERS = 0o022


def default_folder() -> str:
    """Return the folder for receipts of the current user; that of root if the user has no home directory."""
    if sys.platform == "win32":
        data = os.environ.get("PROGRAMDATA", "")
        return os.path.join(data if os.path.isabs(data) else r"C:\ProgramData", "azure-scheduled-events", "approvals")
    own = os.path.expanduser(USER_FOLDER)
    return own if os.geteuid() != 0 and os.path.isabs(own) else DEFAULT_FOLDER


class Receipts:
    """The receipts of this host's approvals at one endpoint; ``path`` is that of their file.

    Args:
        folder: path of the folder; created with the first receipt.
        endpoint: base URL of the IMDS that accepted them.
        boot: returns the identity of this boot.
    """

    def __init__(self, folder: str, endpoint: str, boot: Callable[[], str] = boot_id) -> None:
        self.path = os.path.join(folder, "receipts.json")
        self._folder = folder
        self._endpoint = endpoint
        self._boot = boot

    def read(self) -> dict[str, dict[str, str | None]]:
        """Return the receipts of this boot at this endpoint by folded id; none if folder or file cannot be used.

        They have ``approved_at`` in ISO 8601 and, where it was known, ``not_before``.
        """
        try:
            return (self._of_this_boot() or {}).get(self._endpoint, {})
        except OSError:
            return {}

    def find(self, event_id: str, not_before: datetime | None = None) -> str | None:
        """Return when the event was approved, in ISO 8601; None if there is no readable receipt.

        The letter case of the id does not count. ``not_before`` is that of the event as it is now, or None. A receipt
        with another NotBefore is ignored: Azure reuses an id for another occurrence, and a second approval has no
        effect.
        """
        receipt = self.read().get(event_id.casefold(), {})
        noted = receipt.get("not_before")
        is_same = noted is None or not_before is None or noted == as_utc_text(not_before)
        return receipt.get("approved_at") if is_same else None

    def write(self, event_id: str, approved_at: str, not_before: datetime | None = None) -> bool:
        """Write the receipt of an accepted approval: the file as a whole or not at all.

        ``approved_at`` is in ISO 8601; ``not_before`` is that of the event as it was approved, or None where unknown.
        Of two processes that write at the same moment one may lose its receipt; the approval is then sent again.

        Returns:
            True if the file was damaged; it is replaced.

        Raises:
            OSError: the receipt cannot be written.
        """
        # on Windows, Python 3.12.4 and later (3.9.20, 3.10.15, 3.11.10) then permit access only to the owner, the
        # administrators and the system; others inherit the list of the parent folder
        os.makedirs(self._folder, mode=0o700 if sys.platform == "win32" else 0o755, exist_ok=True)
        held = self._of_this_boot()
        receipts = {} if held is None else held
        receipt = {"approved_at": approved_at, "not_before": None if not_before is None else as_utc_text(not_before)}
        receipts.setdefault(self._endpoint, {})[event_id.casefold()] = receipt
        content = {"boot": self._boot(), "receipts": receipts}
        durable_file.write(self.path, json.dumps(content).encode("ascii"), mode=0o644)
        return held is None

    def _of_this_boot(self) -> dict[str, dict[str, dict[str, str | None]]] | None:
        """Return the receipts of this boot by endpoint and folded id; None if the file is damaged; raise OSError."""
        if sys.platform != "win32":
            found = os.stat(self._folder)
            if found.st_uid not in (0, os.geteuid()) or found.st_mode & _WRITABLE_BY_OTHERS:
                raise PermissionError(errno.EPERM, "another user can write to the folder", self._folder)
        try:
            content = durable_file.read_json(self.path)
            receipts = {
                endpoint: {key: dict(receipt) for key, receipt in found.items()}
                for endpoint, found in content["receipts"].items()
            }
            return receipts if content["boot"] == self._boot() else {}
        except FileNotFoundError:
            return {}
        except (ValueError, TypeError, LookupError, AttributeError):
            return None
