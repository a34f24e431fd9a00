# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Writes the facts for Ansible. An error in it never ends the daemon."""

from __future__ import annotations

import contextlib
import os
import time
from typing import Any, Callable

from hook_runner.atomic_file import replace_file
from hook_runner.clock import boot_id
from hook_runner.lifecycle.engine import Engine
from hook_runner.log import Log
from hook_runner.permissions import location_problem, trusted_owners
from hook_runner.reporting import facts
from hook_runner.reporting.imds_health import ImdsHealth

# the file is written again after this share of facts_stale_after, so that a running daemon's never becomes stale
_REFRESH = 1 / 3
# seconds between two attempts to write a file that could not be written
RETRY_INTERVAL = 5.0
# Ansible may gather facts as any user
MODE = 0o644


class FactsOutput:
    """The file of facts; written when they change, and regularly.

    Args:
        path: the file.
        stale_after: seconds for which its content holds.
        owners: uids that may own the folder.
        log: gets a line when an error begins or ends.
        monotonic: seconds that never go back.
        wall: seconds since 1970.
    """

    def __init__(
        self,
        path: str,
        stale_after: float,
        owners: frozenset[int],
        log: Log,
        monotonic: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._path, self._stale_after, self._owners, self._log = path, stale_after, owners, log
        self._monotonic, self._wall = monotonic, wall
        self._written: dict[str, Any] | None = None
        self._due_at = float("-inf")
        self._error = ""

    def due_in(self) -> float:
        """Return the seconds until the file has to be written again."""
        return max(0.0, self._due_at - self._monotonic())

    def update(self, engine: Engine, health: ImdsHealth) -> None:
        """Write the facts if they have changed, or if the file is old."""
        self.write(facts.to_dict(engine, health))

    def write(self, found: dict[str, Any]) -> None:
        """Write the facts if they have changed, or if the file is old; ``found``: as `facts.to_dict` returns them."""
        now = self._monotonic()
        if now < self._due_at and (found == self._written or self._error):
            return
        content = facts.with_validity(found, self._wall(), self._stale_after, boot_id().decode("ascii"))
        error = ""
        try:
            reason = location_problem(os.path.dirname(self._path), self._owners)
            if reason is not None:
                raise OSError(f"other users could replace it: {reason}")
            replace_file(self._path, facts.as_bytes(content), MODE)
            self._written = found
        except OSError as reason:
            error = f"facts_file: {self._path} cannot be written: {reason}"
        self._due_at = now + (RETRY_INTERVAL if error else self._stale_after * _REFRESH)
        if error != self._error:
            self._log.write("warning" if error else "notice", error or f"facts_file: {self._path} is written again")
        self._error = error

    def close(self) -> None:
        """Mark the file as stale: no process keeps it up to date from now on."""
        if self._written is not None:
            with contextlib.suppress(OSError, ValueError):
                mark_stale(self._path)


def mark_stale(path: str) -> None:
    """Mark a file of facts as stale. Raises OSError and the ValueError of `facts.read`."""
    reason = location_problem(os.path.dirname(path), trusted_owners())
    if reason is not None:
        raise OSError(f"facts_file: {path} is not changed: other users could replace it: {reason}")
    found = facts.read(path, time.time(), boot_id().decode("ascii"))
    replace_file(path, facts.as_bytes({**found, "stale": True}), MODE)
