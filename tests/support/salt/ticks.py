# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Ticks of a beacon: those of Salt, which loaded.py adds, or calls of the watcher without Salt."""

from __future__ import annotations

import json
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any

from azure_events_watch import durable_file, watchers
from azure_events_watch.settings import parse_settings
from azure_events_watch.state_file import state_path
from support.wait import wait_until

NAME = "azure_events"


class Ticks(ABC):
    """A beacon that a test ticks; each tick returns what the beacon sends."""

    @abstractmethod
    def tick(self) -> list[dict[str, Any]]: ...

    @abstractmethod
    def close(self) -> None:
        """Stop the watcher, as at a refresh."""

    def for_seconds(self, seconds: float) -> list[dict[str, Any]]:
        fired = []
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            fired += self.tick()
            time.sleep(0.05)
        return fired

    def tick_until(self, holds: Callable[[list[dict[str, Any]]], bool], timeout: float = 60) -> list[dict[str, Any]]:
        """Tick until the condition holds for the fired events, and return them all."""
        fired: list[dict[str, Any]] = []
        ends = time.monotonic() + timeout
        while not holds(fired):
            assert time.monotonic() < ends, fired
            fired += self.tick()
            time.sleep(0.05)
        return fired


class WatcherTicks(Ticks):
    """Calls of the watcher as the beacon makes them, without Salt. ``session`` is the session key of the master."""

    session: str | None = None

    def __init__(self, cachedir: Path, endpoint: str, **options: Any) -> None:
        self._seen = Path(state_path(str(cachedir), NAME))
        config = [{"_beacon_name": NAME}, *({key: value} for key, value in {"poll_interval": 0.25, **options}.items())]
        self._settings = parse_settings(config, {"endpoint": endpoint})
        self._last_sequence = 0

    def tick(self) -> list[dict[str, Any]]:
        fired = watchers.pending_notifications(self._settings, str(self._seen), "master", self.session)
        self._last_sequence = max([self._last_sequence, *(event.get("sequence", 0) for event in fired)])
        return fired

    def close(self) -> None:
        watchers.close(str(self._seen))

    def wait_until_written(self) -> None:
        wait_until_written(self._seen, self._last_sequence)

    @property
    def resource_name(self) -> Any:
        """Return the name of the VM in the state file."""
        return json.loads(state_text(self._seen))["resource_name"]


def state_text(seen: Path) -> str:
    """Return the content of the state file, also while a watcher replaces it."""
    return durable_file.read(str(seen)).decode("latin-1")


def wait_until_written(seen: Path, sequence: int) -> None:
    """Wait until the state file has the last change, the listed events as announced, and the ends as sent."""

    def written() -> bool:
        if not seen.exists():
            return False
        state = json.loads(state_text(seen))
        return state["sequence"] >= sequence and all(
            entry["announced"] is (entry["change"] != "gone") for entry in state["entries"] if entry["meant"]
        )

    wait_until(written, f"what was sent in {seen}")


def end_process(beacon: Ticks) -> None:
    """End the minion's process; the next one has only the state file."""
    beacon.close()
    join_threads()
    watchers._WATCHERS.clear()
    watchers._QUEUES.clear()


def join_threads() -> None:
    """Wait for the end of all watchers that are closed."""
    for thread in watcher_threads():
        thread.join(60)
    assert not watcher_threads()


def watcher_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("azure_events_watch")]
