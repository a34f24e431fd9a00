# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""The address of IMDS in configurations."""

from __future__ import annotations

from urllib.parse import urlsplit

from .errors import ImdsError

DEFAULT_ENDPOINT = "http://169.254.169.254"
AUTO = "auto"


def validate_endpoint(endpoint: str) -> str:
    """Return the base URL ``http://HOST[:PORT]`` without a closing slash.

    Raises:
        ImdsError: ``endpoint`` is not such a URL, with or without a closing slash; it is not retryable.
    """
    try:
        parts = urlsplit(endpoint)
        sound = parts.scheme == "http" and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        sound = False
    else:
        sound = sound and parts.path in ("", "/") and not (parts.query or parts.fragment or parts.username)
    if not sound:
        raise ImdsError(
            f"endpoint {endpoint!r} is not an address of IMDS; expected http://HOST, http://HOST:PORT or auto",
            retryable=False,
        )
    return "http://" + parts.netloc
