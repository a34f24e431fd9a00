# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Errors between this VM and IMDS.

Every error means "unknown": neither that there are events nor that there are none.
"""

from __future__ import annotations

from typing import Any

from .printable import printable


class ImdsError(Exception):
    """IMDS gave no usable answer. The text names the request, the answer and the remedy, and is printable.

    Attributes:
        status: HTTP status of the answer, or None where there was none.
        retryable: whether the same request may succeed later without a change of configuration
            (docs/reference/scheduled-events.md 1.6).
        retry_after: seconds to wait, as the server requested, or None.
        supported_versions: the api-versions that the answer to an unknown one named, newest first; else empty.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        retryable: bool = True,
        retry_after: float | None = None,
        supported_versions: tuple[str, ...] = (),
    ) -> None:
        super().__init__(printable(message))
        self.status = status
        self.retryable = retryable
        self.retry_after = retry_after
        self.supported_versions = supported_versions

    def as_dict(self) -> dict[str, Any]:
        """Return the error as plain JSON values."""
        return {"kind": type(self).__name__, "message": str(self), "status": self.status, "retryable": self.retryable}


class ImdsUnreachable(ImdsError):
    """No answer came in time: connection refused, reset, no route, or a timeout.

    Attributes:
        connected: whether a connection was established; False on a host without IMDS.
    """

    def __init__(self, message: str, *, connected: bool = False) -> None:
        super().__init__(message)
        self.connected = connected


class ImdsRefused(ImdsError):
    """The answer has another HTTP status than 200."""


class ImdsUnreadable(ImdsError):
    """The answer is a 200 without a readable document: empty, not JSON, cut short, too long, or of another shape."""


class OwnNameUnknown(ImdsError):
    """A result depends on this VM's name, and neither IMDS nor the caller gave it. It is never guessed."""

    def __init__(self) -> None:
        super().__init__(
            "this VM's resource name is not known: IMDS gave no compute.name;"
            " set resource_name to the name that Azure has for this VM (not its hostname)"
        )
