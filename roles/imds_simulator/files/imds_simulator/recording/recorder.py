# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Records: polls IMDS as a client does and writes each answer to the file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Callable, NamedTuple, Protocol

from .exchange import Reply
from .lines import INSTANCE, POLL, Answer, Begin, End, answer_data, begin_data, end_data
from .pacing import ANSWER_TIMEOUT, FIRST_ANSWER_TIMEOUT, INSTANCE_INTERVAL, RateLimit, delay
from .probes import EVENTS_PATH, INSTANCE_PATH, INSTANCE_VERSION, PROBES, Probe, burst, conditional
from .writer import RecordingFile

# a line has its body again after so many lines, so that one damaged line spoils few others
_REFERENCES = 600


class Clock(Protocol):
    """The times that the recorder uses."""

    def wall(self) -> float:
        """Return the Unix time in seconds."""

    def monotonic(self) -> float:
        """Return seconds of a clock that is never set."""

    def sleep(self, seconds: float) -> bool:
        """Wait. Return False when the recorder shall end."""


class Send(Protocol):
    """Sends one request; see ``Exchange.send``."""

    def __call__(self, method: str, path: str, headers: Mapping[str, str], timeout: float) -> Reply:
        """Send a request and return the outcome."""


class Settings(NamedTuple):
    """The requests of a recording.

    ``length`` and ``interval`` are seconds; ``versions`` the api-versions that each poll asks for; ``probe`` and
    ``probe_rate`` add the requests of probes.py.
    """

    length: float
    interval: float
    versions: tuple[str, ...]
    probe: bool = False
    probe_rate: bool = False


class Recorder:
    """Writes the answers to ``file``.

    ``replace`` replaces names in an answer by pseudonyms, or returns it unchanged; ``report`` prints a line for the
    user.
    """

    def __init__(
        self,
        settings: Settings,
        file: RecordingFile,
        send: Send,
        clock: Clock,
        replace: Callable[[Answer], Answer],
        report: Callable[[str], None],
    ) -> None:
        self._settings = settings
        self._file = file
        self._send = send
        self._clock = clock
        self._replace = replace
        self._report = report
        self._rate = RateLimit()
        self._latest: dict[Any, Answer] = {}
        self._had_document = False
        self._etag = ""
        self.counts: Counter[str] = Counter()

    def run(self) -> str:
        """Record until the time is over, or the clock ends the recorder; return the reason.

        Raises:
            CannotWrite: the disk is full, for example.
        """
        settings, clock = self._settings, self._clock
        begin = Begin(self._file.lines + 1, clock.wall(), settings.interval, settings.versions)
        self._file.append(begin_data(begin), durable=True)
        try:
            reason = self._poll_until(clock.monotonic() + settings.length)
        except Interrupted:
            reason = "signal"
        self._file.append(end_data(End(self._file.lines + 1, clock.wall(), reason)), durable=True)
        return reason

    def _poll_until(self, deadline: float) -> str:
        clock = self._clock
        next_instance = clock.monotonic()
        failures = 0
        has_probed = False
        while True:
            started = clock.monotonic()
            if started >= next_instance:
                self._ask(Probe(INSTANCE, f"{INSTANCE_PATH}?api-version={INSTANCE_VERSION}"), ANSWER_TIMEOUT)
                next_instance = started + INSTANCE_INTERVAL
            answer = self._poll()
            # an idle connection that the server closed is not a failure of the service
            stale = answer.error == "closed" and failures == 0
            failures = 0 if answer.status in (200, 304) else failures + 1
            if answer.status == 200 and not has_probed:
                self._send_probes()
                has_probed = True
            pause = 0.0 if stale else self._pause(started, answer, failures)
            if clock.monotonic() + pause >= deadline:
                return "time" if clock.sleep(max(0.0, deadline - clock.monotonic())) else "signal"
            if not clock.sleep(pause):
                return "signal"

    def _pause(self, started: float, answer: Answer, failures: int) -> float:
        wanted = delay(self._settings.interval, answer.status, failures, answer.headers.get("retry-after", ""))
        spent = self._clock.monotonic() - started if failures == 0 else 0.0
        return max(0.0, wanted - spent)

    def _poll(self) -> Answer:
        """Ask for the document in each version and return the last answer that is not good, or the last one."""
        answers = [self._poll_version(version) for version in self._settings.versions]
        return next((each for each in reversed(answers) if each.status != 200), answers[-1])

    def _poll_version(self, version: str) -> Answer:
        timeout = ANSWER_TIMEOUT if self._had_document else FIRST_ANSWER_TIMEOUT
        answer = self._ask(Probe(POLL, f"{EVENTS_PATH}?api-version={version}"), timeout)
        if answer.status == 200:
            self._had_document = True
            self._etag = answer.headers.get("etag", "")
        return answer

    def _send_probes(self) -> None:
        if self._settings.probe:
            self._report("sending requests that IMDS should reject")
            for probe in PROBES + ((conditional(self._etag),) if self._etag else ()):
                self._ask(probe, ANSWER_TIMEOUT)
        if self._settings.probe_rate:
            self._report("sending more requests than IMDS accepts in a second")
            for probe in burst():
                self._ask(probe, ANSWER_TIMEOUT, limited=False)

    def _ask(self, probe: Probe, timeout: float, limited: bool = True) -> Answer:
        clock = self._clock
        wait = self._rate.wait(clock.monotonic()) if limited else 0.0
        if wait and not clock.sleep(wait):
            raise Interrupted
        wall, monotonic = clock.wall(), clock.monotonic()
        self._rate.sent(monotonic)
        reply = self._send(probe.method, probe.path, probe.headers, timeout)
        answer = Answer(
            self._file.lines + 1,
            wall,
            monotonic,
            probe.name,
            probe.method,
            probe.path,
            probe.headers,
            clock.monotonic() - monotonic,
            reply.connection,
            reply.status,
            reply.headers,
            reply.body,
            reply.error,
        )
        self._write(self._replace(answer))
        return answer

    def _write(self, answer: Answer) -> None:
        self.counts[answer.error or str(answer.status)] += 1
        known = self._latest.get(answer.question)
        same = known is not None and not answer.error and (known.status, known.body) == (answer.status, answer.body)
        if same and known is not None and answer.line - known.line < _REFERENCES and not answer.removed:
            self._file.append(answer_data(answer, known), durable=False)
            return
        self._file.append(answer_data(answer, None), durable=True)
        if not answer.error:
            self._latest[answer.question] = answer
        if answer.purpose == POLL and not same:
            self._report(_news(answer))


class Interrupted(Exception):
    """A signal ended the recorder while it waited."""


def _news(answer: Answer) -> str:
    """Return a line about an answer that differs from the one before it."""
    if answer.error:
        return f"line {answer.line}: no answer: {answer.error}"
    return f"line {answer.line}: status {answer.status}, {len(answer.body)} bytes"
