# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""The address of IMDS, as configurations give it."""

from __future__ import annotations

from urllib.parse import urlsplit

from .errors import ImdsError

DEFAULT_ENDPOINT = "http://169.254.169.254"
AUTO = "auto"


def validate_endpoint(endpoint: str) -> str:
    """The base URL without a closing slash; raises ImdsError for what is no plain ``http://HOST[:PORT]``."""
    try:
        parts = urlsplit(endpoint)
        sound = parts.scheme == "http" and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        sound = False
    else:
        sound = sound and parts.path in ("", "/") and not (parts.query or parts.fragment or parts.username)
    if not sound:
        raise ImdsError(
            f"endpoint {endpoint!r} is no address of IMDS: expected http://HOST or http://HOST:PORT, or auto",
            retryable=False,
        )
    return "http://" + parts.netloc
