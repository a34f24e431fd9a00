# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Polls IMDS as a client does and writes each answer to the recording."""

from __future__ import annotations

import json
import time
from collections import Counter
from typing import Callable, NamedTuple
from urllib.parse import quote

from ..scenario.groups import Address
from ..times import iso
from .allow_list import AllowList
from .imds_request import get
from .recording_file import RecordingFile

# seconds between requests: the VM's other programs get the rest of the five per second that IMDS accepts
_SPACING = 1 / 3
_FIRST_ANSWER_TIMEOUT = 130.0
_ANSWER_TIMEOUT = 10.0
_DELAY_AFTER_ERROR = 10.0
_INSTANCE_INTERVAL = 3600.0
_INSTANCE = "/metadata/instance?api-version=2021-02-01"
_EVENTS = "/metadata/scheduledevents?api-version="


class Clock(NamedTuple):
    """The time, in seconds since 1970 and of a clock that is never set, and a wait of seconds."""

    wall: Callable[[], float] = time.time
    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


class Recorder:
    """Writes answers of ``endpoint`` to ``file``; ``report`` gets a line when the outcome of polls changes.

    ``outcomes`` counts the answers by status, or code of the error.
    """

    def __init__(self, file: RecordingFile, endpoint: Address, clock: Clock, report: Callable[[str], None]) -> None:
        self.allow_list = AllowList(file.key)
        self.outcomes: Counter[str] = Counter()
        self._file = file
        self._endpoint = endpoint
        self._clock = clock
        self._report = report

    def run(self, length: float, interval: float, versions: tuple[str, ...]) -> None:
        """Record for ``length`` seconds; each poll asks for the document in each of ``versions``.

        Raises:
            OSError: the recording cannot be written, for example because the disk is full.
        """
        clock, timeout, latest = self._clock, _FIRST_ANSWER_TIMEOUT, ""
        next_instance = clock.monotonic()
        deadline = next_instance + length
        while True:
            started = clock.monotonic()
            if started >= next_instance and self._record(_INSTANCE, _ANSWER_TIMEOUT) == "200":
                next_instance = started + _INSTANCE_INTERVAL
            outcomes = [self._record(_EVENTS + quote(version, safe=""), timeout) for version in versions]
            pause = max(interval, _DELAY_AFTER_ERROR)
            if "200" in outcomes:
                pause, timeout = interval, _ANSWER_TIMEOUT
            if latest != ", ".join(outcomes):
                latest = ", ".join(outcomes)
                self._report(f"{iso(clock.wall())} polls are answered by {latest}")
            clock.sleep(max(0.0, min(started + pause, deadline) - clock.monotonic()))
            if started + pause >= deadline:
                return

    def _record(self, path: str, timeout: float) -> str:
        """Send a request, write the answer, and return the outcome."""
        clock = self._clock
        line: dict[str, object] = {"time": iso(clock.wall()), "path": path}
        sent = clock.monotonic()
        reply = get(self._endpoint, path, timeout)
        line["seconds"] = round(clock.monotonic() - sent, 4)
        body = self.allow_list.body(reply.body)
        outcome = reply.error or ("not-imds" if body is None else str(reply.status))
        if reply.error or body is None:
            line["error"] = outcome
        else:
            line.update(status=reply.status, headers=self.allow_list.headers(reply.headers), body=body)
        self._file.append(json.dumps(line, separators=(",", ":")).encode("ascii") + b"\n")
        self.outcomes[outcome] += 1
        clock.sleep(max(0.0, sent + _SPACING - clock.monotonic()))
        return outcome
