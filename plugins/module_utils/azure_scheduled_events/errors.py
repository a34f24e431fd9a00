# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""What can go wrong between this VM and IMDS: one family of exceptions.

Every error means "unknown": whoever catches one knows neither that there are events nor that there
are none.
"""

from __future__ import annotations

from typing import Any


class ImdsError(Exception):
    """IMDS gave no usable answer. The text says what was asked, what came back and what to do.

    Attributes:
        endpoint: base URL that was asked, or None where the error arose before a request.
        status: HTTP status of the answer, or None where there was none.
        retryable: whether the same request may succeed later without anybody changing anything
            (docs/reference/scheduled-events.md 1.6).
        retry_after: seconds to wait as asked for by the server, or None.
    """

    def __init__(
        self,
        message: str,
        endpoint: str | None = None,
        status: int | None = None,
        retryable: bool = True,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.endpoint = endpoint
        self.status = status
        self.retryable = retryable
        self.retry_after = retry_after

    def as_dict(self) -> dict[str, Any]:
        """As plain JSON values."""
        return {"kind": type(self).__name__, "message": str(self), "status": self.status, "retryable": self.retryable}


class ImdsUnreachable(ImdsError):
    """Nobody answered in time: refused, reset, no route, or a time limit passed.

    Attributes:
        connected: whether there was a connection at all; False on a host without IMDS.
    """

    def __init__(self, message: str, endpoint: str | None = None, connected: bool = False) -> None:
        super().__init__(message, endpoint)
        self.connected = connected


class ImdsRefused(ImdsError):
    """Somebody answered with another HTTP status than 200.

    Attributes:
        supported_versions: the api-versions that a version error named, newest first; else empty.
        version_fallback: whether the next call uses another api-version, and may follow at once.
    """

    def __init__(
        self,
        message: str,
        endpoint: str | None = None,
        status: int | None = None,
        retryable: bool = True,
        retry_after: float | None = None,
        supported_versions: tuple[str, ...] = (),
        version_fallback: bool = False,
    ) -> None:
        super().__init__(message, endpoint, status, retryable, retry_after)
        self.supported_versions = supported_versions
        self.version_fallback = version_fallback

    def with_version_fallback(self) -> ImdsRefused:
        """Return this error for a client that goes on with another api-version; it is retryable."""
        return ImdsRefused(str(self), self.endpoint, self.status, True, self.retry_after, self.supported_versions, True)


class ImdsUnreadable(ImdsError):
    """The answer was a 200 without a readable document: empty, not JSON, cut short, too long, or of another shape."""


class OwnNameUnknown(ImdsError):
    """Something depends on which VM this is, and neither IMDS nor the caller named it. It is never guessed."""

    def __init__(self) -> None:
        super().__init__(
            "this VM's resource name is not known, so nobody can tell which events concern it: IMDS gave no compute.name;"
            " set resource_name to the name that Azure has for this VM (not its hostname)"
        )
