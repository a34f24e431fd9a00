# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""A client of the Instance Metadata Service (docs/reference/scheduled-events.md 1)."""

from __future__ import annotations

import json
import time
from typing import Any, Callable, Sequence

from .document import API_VERSION, EventDocument, parse_document
from .endpoint import DEFAULT_ENDPOINT, parse_api_versions, parse_endpoint
from .errors import ImdsError, ImdsRefused, ImdsUnreadable
from .options import parse_option
from .timestamps import parse_time
from .transport import Request, Response, Transport, TransportFactory

INSTANCE_API_VERSION = "2021-02-01"

_EVENTS_PATH = "/metadata/scheduledevents?api-version=%s"
_INSTANCE_PATH = "/metadata/instance?api-version=%s"
_HEADERS = {
    "Metadata": "true",
    "Accept-Encoding": "identity",
    "User-Agent": "azure-scheduled-events",
}
_CONNECT_TIMEOUT = 3.0
# an attempt at the end of a time limit has a chance
_SHORTEST = 0.1
# Azure switches the service off after a day without a call, and the next answer is as slow as the
# first (reference 4.1.3)
_SERVICE_IDLE_LIMIT = 24 * 3600.0
# reference 1.6: the same request fails again
_NOT_RETRYABLE = (400, 401, 403, 405)
_PROXY_STATUSES = (401, 403, 407, 502, 504)
# answers to an api-version that the service does not know (reference 1.6.2, 1.6.11)
_UNKNOWN_VERSION = (400, 404)
# seconds for which a version of a list is used before the first one is tried again, and after its last good answer:
# an update of IMDS takes up to 70 (reference 1.6.7)
_VERSION_KEPT, _VERSION_SILENT = 3600.0, 120.0


class Imds:
    """A client of one VM's IMDS: one attempt per call, no sleeping, for one thread at a time.

    Every method that sends a request raises an ImdsError, whose kinds are in the module errors, unless the answer is
    good. ``within`` limits one call further, in seconds; an attempt has at least 0.1 seconds.

    Args:
        endpoint: base URL, also with a closing slash.
        api_version: of Scheduled Events, or a list. Of a list a call for events tries one after the other while the
            answer is 400 or 404. The one that answers 200 is used for an hour, in which 404 has its usual meaning
            ("unknown"). All are tried again once after the hour, after two minutes without a good answer, and when
            IMDS says which versions it supports.
        timeout: wall-clock limit in seconds of one whole answer.
        first_timeout: seconds until the first good answer of scheduled events begins, also after a
            day without a call: switching the service on takes up to two minutes (reference 1.8.1).
        max_bytes: longest answer that is read.
        clock: monotonic seconds.
        transport: makes the transport of an endpoint.

    Attributes:
        endpoint: base URL.
        versions_of_a_poll: how many api-versions a call for events may try.
    """

    def __init__(
        self,
        endpoint: str = DEFAULT_ENDPOINT,
        api_version: str | Sequence[str] = API_VERSION,
        timeout: float = 10.0,
        first_timeout: float = 130.0,
        max_bytes: int = 8 * 1024 * 1024,
        clock: Callable[[], float] = time.monotonic,
        transport: TransportFactory = Transport,
    ) -> None:
        try:
            self._versions = parse_option("api_version", api_version, parse_api_versions)
            self.endpoint = parse_option("endpoint", endpoint, parse_endpoint)
        except ValueError as error:
            raise ImdsError(str(error), retryable=False) from None
        for name, value in (("timeout", timeout), ("first_timeout", first_timeout), ("max_bytes", max_bytes)):
            if not value > 0:
                raise ValueError(f"{name} must be more than 0, not {value!r}")
        self._timeout = timeout
        self._first_timeout = first_timeout
        self._clock = clock
        self._transport = transport(self.endpoint, max_bytes, _CONNECT_TIMEOUT, clock)
        self.versions_of_a_poll = len(self._versions)
        self._version = self._versions[0]
        self._version_until: float | None = None
        self._last_answer_at: float | None = None
        self._read: tuple[bytes, EventDocument | None] = (b"", None)
        self._sent_at = self._sent_by = 0.0

    @property
    def requests_sent(self) -> int:
        """How many HTTP requests went out so far, repeats included."""
        return self._transport.requests_sent

    def events(self, within: float | None = None, hold: float = 0.0) -> EventDocument:
        """Return the current document; the first call on a VM switches the service on (reference 4.1).

        ``hold`` is in seconds, before those of ``within``, for which a transport may wait for another document than
        the last one. An answer with the same bytes as the one before has the same object as ``events``.

        Raises:
            ImdsUnreadable: the answer has no readable document.
        """
        is_kept = self._is_version_kept()
        version, answer = self._read_answer(is_kept, within, hold)
        try:
            document = self._parsed(answer.body)
        except ImdsUnreadable as error:
            text = f"{self.endpoint} answered 200 to GET scheduledevents, but {error}"
            raise ImdsUnreadable(text, status=200) from error
        self._last_answer_at = self._clock()
        if version != self._version or not is_kept:
            self._version, self._version_until = version, self._last_answer_at + _VERSION_KEPT
        return document._replace(
            server_time=parse_time(answer.headers.get("Date", "")),
            api_version=version,
            sent_at=self._sent_at,
            sent_by=self._sent_by,
        )

    def _read_answer(self, is_kept: bool, within: float | None, hold: float) -> tuple[str, Response]:
        """Return the answer of the api-version in use, else of the first one in the list that answers 200."""
        refusals: list[ImdsRefused] = []
        untried = list(self._versions)
        ends = None if within is None else self._clock() + within + (hold if is_kept else 0.0)
        if not is_kept and self._version_until is not None:
            # other versions are tried once in this time, whether they answer, refuse or hang
            self._version_until = self._clock() + _VERSION_KEPT
        if is_kept:
            try:
                return self._version, self._answer_of(self._version, within, hold)
            except ImdsRefused as error:
                if not error.supported_versions:
                    raise
                refusals.append(error)
                untried.remove(self._version)
        self._read = (b"", None)
        for version in untried:
            try:
                return version, self._answer_of(version, None if ends is None else ends - self._clock())
            except ImdsRefused as error:
                if version == self._version and error.status not in _UNKNOWN_VERSION:
                    raise
                refusals.append(error)
        self._version, self._version_until = self._versions[0], None
        raise refusals[0] if len(refusals) == 1 else _joined(refusals)

    def _is_version_kept(self) -> bool:
        if self._version_until is None or self._last_answer_at is None:
            return False
        return self._clock() < min(self._version_until, self._last_answer_at + _VERSION_SILENT)

    def _answer_of(self, version: str, within: float | None, hold: float = 0.0) -> Response:
        request = Request("GET", _EVENTS_PATH % version, _HEADERS)
        if hold > 0 and self._read[1] is not None:
            request = request._replace(known=self._read[0], hold=hold)
        return self._events_exchange(request, within)

    def _parsed(self, body: bytes) -> EventDocument:
        """Return the document of a body, which is parsed only if it differs from the last one."""
        known, document = self._read
        if document is None or body != known:
            document = parse_document(body)
            self._read = (body, document)
        return document

    def approve(self, event_id: str, within: float | None = None) -> None:
        """Approve an event, which releases every VM in its ``Resources``; safe to repeat (reference 1.5).

        ``event_id`` is as IMDS wrote it. After an error it is unknown whether IMDS accepted the approval: read the
        events before the next attempt.
        """
        # escaped to ASCII, so that IMDS gets the id exactly as it wrote it
        body = json.dumps({"StartRequests": [{"EventId": event_id}]}).encode("ascii")
        headers = {**_HEADERS, "Content-Type": "application/json"}
        self._events_exchange(Request("POST", _EVENTS_PATH % self._version, headers, body), within)
        self._last_answer_at = self._clock()

    def instance(self, within: float | None = None) -> dict[str, Any]:
        """Return the instance metadata document of this VM (reference 3.3), with ``compute`` and ``network``.

        Raises:
            ImdsUnreadable: the answer is not a JSON object.
        """
        request = Request("GET", _INSTANCE_PATH % INSTANCE_API_VERSION, _HEADERS)
        answer = self._exchange(request, self._timeout, within)
        document = _json_object(answer.body)
        if document is None:
            raise ImdsUnreadable(
                f"{self.endpoint} answered 200 to GET /metadata/instance, but the body is not a JSON object:"
                f" it begins with {answer.body[:60]!r}",
                status=200,
            )
        return document

    def close(self) -> None:
        """Close the kept connection; the next call opens another."""
        self._transport.close()

    def _events_exchange(self, request: Request, within: float | None) -> Response:
        self._sent_at, sent_before = self._clock(), self.requests_sent
        silent = self._last_answer_at is None or self._sent_at - self._last_answer_at >= _SERVICE_IDLE_LIMIT
        answer = self._exchange(request, self._first_timeout if silent else self._timeout, within)
        is_exact = not request.hold and self.requests_sent - sent_before == 1
        self._sent_by = self._sent_at if is_exact else self._clock()
        return answer

    def _exchange(self, request: Request, total: float, within: float | None) -> Response:
        """Return a good answer to the request; ``total`` and ``within`` are seconds until it begins."""
        if within is not None:
            total = max(_SHORTEST, min(total, within))
        answer = self._transport.exchange(request, total, min(self._timeout, total))
        if answer.status == 200:
            coding = answer.headers.get("Content-Encoding", "identity")
            if coding.lower() != "identity":
                raise ImdsUnreadable(f"{self.endpoint} answered in content coding {coding!r}, which was not requested")
            return answer
        raise self._refused(request, answer)

    def _refused(self, request: Request, answer: Response) -> ImdsRefused:
        reason, versions = _error_body(answer.body)
        about = f"{request.method} {request.path}"
        if versions:
            about = "api-version " + request.path.partition("api-version=")[2]
        text = f"IMDS at {self.endpoint} answered {answer.status} to {about}"
        if reason:
            text += ": " + reason
        if versions:
            text += "; supported: " + ", ".join(versions)
        elif 300 <= answer.status < 400:
            text += ": a redirect, which IMDS never sends; something else answers on this address"
        elif answer.status in _PROXY_STATUSES:
            text += "; this status comes from a proxy or another service, not from IMDS"
            text += "; exclude the address from the proxy or service mesh"
        elif answer.status == 410:
            text += "; IMDS is being updated, for up to 70 seconds"
        return ImdsRefused(
            text,
            status=answer.status,
            retryable=answer.status not in _NOT_RETRYABLE,
            retry_after=_retry_after(answer),
            supported_versions=versions,
        )


def _joined(refusals: list[ImdsRefused]) -> ImdsRefused:
    """Return the error of a list of api-versions of which none works."""
    last = refusals[-1]
    return ImdsRefused(
        "none of the api-versions works: " + "; ".join(map(str, refusals)),
        status=last.status,
        retryable=any(error.retryable for error in refusals),
        retry_after=last.retry_after,
        supported_versions=next((error.supported_versions for error in refusals if error.supported_versions), ()),
    )


def _json_object(body: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(body.decode("utf-8"), strict=False)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _error_body(body: bytes) -> tuple[str, tuple[str, ...]]:
    """Return the message and the supported versions of an error answer; empty where it has none (reference 1.6)."""
    raw = _json_object(body)
    if raw is None:
        return ascii(body[:80].decode("utf-8", "replace")) if body.strip() else "", ()
    versions = raw.get("newest-versions")
    listed = tuple(item for item in versions if isinstance(item, str)) if isinstance(versions, list) else ()
    return str(raw.get("error", ""))[:300], listed[:20]


def _retry_after(answer: Response) -> float | None:
    """Return the seconds of ``Retry-After`` in either form; a date counts from the server's own clock."""
    text = answer.headers.get("Retry-After", "").strip()
    if text.isdecimal():
        return float(text[:9])
    until, now = parse_time(text), parse_time(answer.headers.get("Date", ""))
    if until is None or now is None:
        return None
    return max(0.0, (until - now).total_seconds())
