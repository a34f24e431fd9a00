# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""The record of a preparation: what recover has to undo. It survives a kill and a reboot."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator, Mapping
from typing import Any

from ready_hooks.core import durable_file
from ready_hooks.core.deadline import Deadline
from ready_hooks.core.errors import HookError, OutOfTime
from ready_hooks.core.ownership import refuse_changeable

DEFAULT_FOLDER = "/var/lib/azure-scheduled-events/ready-hooks"
_VERSION = 1
# recover does what it says, often as root
_WHAT = "the record of a preparation"


class Record:
    """The record of one hook, in a file of its own.

    Args:
        folder: of the records of all hooks; it is created with the first record.
        name: of the hook among those of the host.
        use: the kind of the hook; a record of another kind is an error.
    """

    def __init__(self, folder: str, name: str, use: str) -> None:
        self.path = os.path.join(folder, name + ".json")
        self._folder, self._name, self._use = folder, name, use

    @contextlib.contextmanager
    def locked(self, deadline: Deadline) -> Iterator[None]:
        """Hold the lock of this hook's runs. Raises HookError if another run holds it until the deadline."""
        try:
            self._make_folder()
            descriptor = os.open(os.path.join(self._folder, self._name + ".lock"), os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise HookError(self._folder, f"it cannot be written: {error.strerror}", "set --state-directory") from None
        try:
            if not deadline.wait_until(lambda: durable_file.lock(descriptor), interval=0.1):
                raise OutOfTime(self._name, "another run of this hook has not ended", "wait for its end")
            yield
        finally:
            os.close(descriptor)

    def load(self) -> dict[str, Any] | None:
        """Return what `save` wrote last, or None without a record. Raises HookError."""
        try:
            refuse_changeable(self.path, _WHAT)
            found = durable_file.read_json(self.path)
            if found["version"] != _VERSION or found["use"] != self._use:
                raise ValueError(f"it is of version {found['version']}, for {found['use']}")
            data: dict[str, Any] = dict(found["data"])
            return data
        except FileNotFoundError:
            return None
        except OSError as error:
            raise HookError(self.path, f"the record cannot be read: {error.strerror}") from None
        except (ValueError, KeyError, TypeError) as error:
            remedy = "undo the preparation by hand, then remove the file"
            raise HookError(self.path, f"the record is not usable: {error}", remedy) from None

    def save(self, data: Mapping[str, Any], event_id: str = "") -> None:
        """Write the record, before the action that it describes. Raises HookError."""
        content = {
            "version": _VERSION,
            "use": self._use,
            "event_id": event_id,
            "at": int(time.time()),
            "data": dict(data),
        }
        try:
            self._make_folder()
            durable_file.write(self.path, json.dumps(content).encode("ascii"))
        except OSError as error:
            raise HookError(
                self.path,
                f"the record cannot be written: {error.strerror}",
                "the change that it describes was not made",
            ) from None

    def _make_folder(self) -> None:
        """Create the folder, and those above it, so that only this user can write them."""
        before = os.umask(0o077)
        try:
            os.makedirs(self._folder, exist_ok=True)
        finally:
            os.umask(before)
        refuse_changeable(self._folder, _WHAT)

    def remove(self) -> None:
        """Remove the record, after everything that it describes is undone. Raises HookError."""
        try:
            durable_file.remove(self.path)
        except OSError as error:
            raise HookError(self.path, f"the record cannot be removed: {error.strerror}") from None
