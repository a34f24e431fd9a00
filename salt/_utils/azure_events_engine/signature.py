# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""Signs the runner's requests on the master's bus, because a minion can send events with any tag.

The runner and the engine share a secret in a file that only the user of the master can read.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
import secrets
from typing import Any, Mapping

from azure_scheduled_events import durable_file

# seconds for which a request is valid
REQUEST_LIFETIME = 60.0
_BYTES = 32
_FIELDS = ("request_id", "do", "event_id", "force", "by", "time")


def read_secret(path: str) -> bytes:
    """Return the secret in the file, which is created if necessary; raise OSError on failure."""
    if not os.path.exists(path):
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        own = f"{path}-{os.getpid()}"
        durable_file.write(own, secrets.token_bytes(_BYTES))
        try:
            # if two processes create a secret, the first one is used
            with contextlib.suppress(FileExistsError):
                os.link(own, path)
        finally:
            os.unlink(own)
    return durable_file.read(path)


def sign(request: Mapping[str, Any], secret: bytes) -> str:
    """Return the signature of a request. Fields that the bus adds are not signed."""
    text = json.dumps([request.get(field) for field in _FIELDS])
    return hmac.new(secret, text.encode(), hashlib.sha256).hexdigest()


def is_genuine(request: Mapping[str, Any], secret: bytes, now: float) -> bool:
    """Return True if the request was signed with the secret, and is not too old.

    Args:
        request: has ``time`` (seconds since 1970) and ``signature``.
        secret: of `read_secret`; a shorter one makes no request genuine.
        now: seconds since 1970.
    """
    signature, time = request.get("signature"), request.get("time")
    if (
        len(secret) < _BYTES
        or not isinstance(signature, str)
        or isinstance(time, bool)
        or not isinstance(time, (int, float))
    ):
        return False
    return abs(now - time) <= REQUEST_LIFETIME and hmac.compare_digest(
        signature.encode(), sign(request, secret).encode()
    )
