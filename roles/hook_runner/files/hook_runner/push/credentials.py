# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The secrets of the push: read from files for each delivery, so that an operator can replace them at any time."""

from __future__ import annotations

import base64
import hmac
import os
import stat

from hook_runner.config.settings import Settings
from hook_runner.permissions import permission_problem, printable_path

MAX_SECRET = 4096


class UnusableSecret(OSError):
    """A secret file cannot be used; the text names the file and never has its content."""


def read_secret(path: str, owners: frozenset[int]) -> str:
    """Return the only line of a file that no other user can read or replace.

    Args:
        path: the file.
        owners: uids that may own it.

    Raises:
        UnusableSecret: other users can read or replace it, or it has no usable line.
    """
    about = printable_path(path)
    reason = permission_problem(path, os.path.dirname(os.path.abspath(path)), owners)
    if reason is not None:
        raise UnusableSecret(f"{about}: it is refused: {reason}")
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with open(descriptor, "rb") as file:
            found = os.fstat(descriptor)
            data = file.read(MAX_SECRET + 2) if stat.S_ISREG(found.st_mode) else b""
    except OSError as error:
        raise UnusableSecret(f"{about}: it cannot be read: {error.strerror}") from None
    if not stat.S_ISREG(found.st_mode):
        raise UnusableSecret(f"{about}: it is not a regular file; use a file with one line")
    if found.st_mode & 0o077:
        mode = stat.S_IMODE(found.st_mode)
        raise UnusableSecret(f"{about}: other users can read it (mode {mode:04o}); set its mode to 0600")
    line = data[:-2] if data.endswith(b"\r\n") else data[:-1] if data.endswith(b"\n") else data
    if not line or len(line) > MAX_SECRET or any(not 32 < byte < 127 for byte in line):
        text = f"expected one line of 1 to {MAX_SECRET} visible ASCII characters without spaces"
        raise UnusableSecret(f"{about}: {text}")
    return line.decode("ascii")


def secret_problems(settings: Settings, owners: frozenset[int]) -> list[str]:
    """Return a sentence for each secret file of the settings that cannot be used."""
    found = []
    for key, path in (("push_token_file", settings.push_token_file), ("push_hmac_file", settings.push_hmac_file)):
        try:
            if path:
                read_secret(path, owners)
        except UnusableSecret as error:
            found.append(f"{key}: {error}")
    return found


def credentials(settings: Settings, body: bytes, owners: frozenset[int]) -> dict[str, str]:
    """Return the headers that prove the sender of this body. Raises UnusableSecret."""
    headers = {}
    if settings.push_token_file:
        headers["Authorization"] = "Bearer " + read_secret(settings.push_token_file, owners)
    if settings.push_hmac_file:
        key = read_secret(settings.push_hmac_file, owners).encode("ascii")
        digest = hmac.new(key, body, settings.push_hmac_algorithm).digest()
        text = digest.hex() if settings.push_hmac_format == "hex" else base64.b64encode(digest).decode("ascii")
        headers[settings.push_hmac_header] = f"{settings.push_hmac_algorithm}={text}"
    return headers
