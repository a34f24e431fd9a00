# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The verb ``record``: keeps what IMDS answers, on a real VM. Needs Python and requests only."""

from __future__ import annotations

import re
import signal
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType
from urllib.parse import urlsplit

from ..cli.output import finish_writing, print_err, start_writing
from ..cli.parsing import Command, flag, option, parse
from ..cli.program import program_name
from ..times import parse_duration
from .anonymise import anonymised
from .exchange import Exchange, Reply
from .lines import Answer, Header
from .probes import EVENTS_VERSION
from .pseudonyms import Pseudonyms, load, pseudonyms_file
from .reader import Unusable
from .recorder import Interrupted, Recorder, Settings
from .writer import CannotWrite, RecordingFile, open_recording

_ENDPOINT = "http://169.254.169.254"
_VERSION = re.compile(r"[\w.-]{1,32}", re.ASCII)
_NOTICE = """record: sends GET requests to {endpoint} every {interval:g} s for {length:g} s. It never approves an event.
record: the first request enables Scheduled Events for this VM and its group (availability set, scale set, cloud
record: service). Its answer may take two minutes. From then on a restart or redeploy that a user asks for waits
record: about 15 minutes, unless a client approves it. 24 hours without a request disable Scheduled Events again."""


def main(arguments: Sequence[str]) -> int:
    """Run the verb with ``arguments`` and return the exit code.

    Exit codes: 0, 1 when the file cannot be written any more, 2 for options or files that cannot be used.
    """
    options = parse(_COMMAND, arguments)
    endpoint = options.endpoint.rstrip("/")
    length, interval = vars(options)["for"], options.interval
    settings = Settings(
        length, interval, tuple(options.api_version or (EVENTS_VERSION,)), options.probe, options.probe_rate
    )
    header = Header(
        time.time(), "other" if options.anonymise and endpoint != _ENDPOINT else endpoint, options.anonymise
    )
    # the recording goes on without a reader of the messages
    start_writing()
    try:
        file = open_recording(options.output, header)
        try:
            # a recorder that was killed at once has no pseudonyms yet
            has_answers = file.before is not None and bool(file.before.answers or file.before.problems)
            names = load(options.output, has_answers) if options.anonymise else None
            if names is not None:
                names.save()
            print_err(_NOTICE.format(endpoint=endpoint, interval=interval, length=length))
            # the user reads it before the first request
            finish_writing()
            return _record(settings, file, endpoint, names)
        finally:
            file.close()
    except Unusable as error:
        print_err(f"{program_name()}: {error}")
        return 2
    except CannotWrite as error:
        print_err(f"{program_name()}: {error}")
        return 1
    finally:
        finish_writing()


def _record(settings: Settings, file: RecordingFile, endpoint: str, names: Pseudonyms | None) -> int:
    if file.before is not None:
        for problem in file.before.problems:
            print_err(f"record: {problem}")
        print_err(f"record: continues {file.name} after line {file.lines}")

    def replace(answer: Answer) -> Answer:
        if names is None:
            return answer
        replaced = anonymised(answer, names)
        names.save()
        return replaced

    clock = SignalClock()
    exchange = Exchange(endpoint, time.monotonic)

    def send(method: str, path: str, headers: Mapping[str, str], timeout: float) -> Reply:
        with clock:
            return exchange.send(method, path, headers, timeout)

    with_signals(clock)
    recorder = Recorder(settings, file, send, clock, replace, lambda line: print_err(f"record: {line}"))
    reason = recorder.run()
    counts = ", ".join(f"{count} x {what}" for what, count in sorted(recorder.counts.items()))
    print_err(f"record: {file.name} has {file.lines} lines; this run ended by {reason}: {counts or 'no answers'}")
    if names is not None:
        print_err(f"record: keep {pseudonyms_file(Path(file.name))} to yourself; it maps names to pseudonyms")
    return 0


class SignalClock:
    """The real clock. A signal ends a wait, and a request that is under way in a ``with`` block."""

    def __init__(self) -> None:
        self._ended = threading.Event()
        self._requesting = False

    def wall(self) -> float:
        """Return the Unix time in seconds."""
        return time.time()

    def monotonic(self) -> float:
        """Return seconds of a clock that is never set."""
        return time.monotonic()

    def sleep(self, seconds: float) -> bool:
        """Wait. Return False after a signal."""
        return not self._ended.wait(seconds)

    def end(self, _number: int, _frame: FrameType | None) -> None:
        """Handle a signal."""
        self._ended.set()
        if self._requesting:
            raise Interrupted

    def __enter__(self) -> None:
        self._requesting = True
        if self._ended.is_set():
            raise Interrupted

    def __exit__(self, *_error: object) -> None:
        self._requesting = False


def with_signals(clock: SignalClock) -> None:
    """Let SIGINT, SIGTERM and SIGHUP end the recorder; with nohup it ignores SIGHUP."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, clock.end)
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        signal.signal(signal.SIGHUP, clock.end)


def _duration(text: str) -> float:
    seconds = parse_duration(text)
    if seconds <= 0:
        raise ValueError(f"{text!r} is not longer than 0 s")
    return seconds


def _interval(text: str) -> float:
    seconds = _duration(text)
    if not 1 <= seconds <= 3600:
        raise ValueError(f"{text!r} is not between 1s and 1h")
    return seconds


def _endpoint(text: str) -> str:
    try:
        url = urlsplit(text)
        # reading the port checks it
        good = url.scheme == "http" and url.hostname and url.port != 0 and url.path in ("", "/") and not url.query
    except ValueError:
        good = False
    if not good or "@" in text:
        raise ValueError(f"{text!r} is not http://HOST[:PORT]")
    return text


def _version(text: str) -> str:
    if not _VERSION.fullmatch(text):
        raise ValueError(f"{text!r} is not a version such as {EVENTS_VERSION}")
    return text


_COMMAND = Command(
    "record",
    "Record the answers of IMDS on this VM. Sends GET requests only and never approves an event.",
    [
        option("output", "FILE", "the recording, JSON lines; an existing recording is continued", Path, required=True),
        option("for", "DURATION", "how long to record, such as 90s, 1h or 2d (default 1h)", _duration, default=3600.0),
        option("interval", "DURATION", "time between polls, 1s to 1h (default 1s)", _interval, default=1.0),
        option("endpoint", "URL", f"(default {_ENDPOINT})", _endpoint, default=_ENDPOINT),
        option(
            "api-version",
            "VERSION",
            f"version of scheduledevents to ask for in each poll; repeatable (default {EVENTS_VERSION})",
            _version,
            multiple=True,
        ),
        flag("anonymise", "replace names, ids, addresses, tags and secrets by pseudonyms; FILE.names maps them"),
        flag(
            "probe",
            "also send each of about 25 unusual requests once, such as one without api-version; they change nothing",
        ),
        flag(
            "probe-rate",
            "also send 13 requests at once; for a second IMDS may reject requests of other programs of this VM",
        ),
    ],
)
