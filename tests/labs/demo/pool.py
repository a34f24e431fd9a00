# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Measures how long HAProxy gives a server no new requests."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from types import TracebackType

INTERVAL = 0.2


class PoolMonitor:
    """Reads the status of all servers, in a thread, while its with statement runs.

    Args:
        servers: returns server -> status, as HAProxy reports it.

    Attributes:
        seconds: server -> seconds in which it was in maintenance, draining or down.
    """

    def __init__(self, servers: Callable[[], Mapping[str, str]]) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self._servers = servers
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def _watch(self) -> None:
        before = time.monotonic()
        while not self._end.wait(INTERVAL):
            try:
                found = self._servers()
            except OSError:
                continue
            now = time.monotonic()
            for name, status in found.items():
                # "UP 1/2" is on its way down, and still gets requests
                self.seconds[name] += 0.0 if status.startswith("UP") else now - before
            before = now

    def __enter__(self) -> PoolMonitor:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end.set()
        self._thread.join()
