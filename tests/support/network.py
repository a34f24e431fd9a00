# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The address of IMDS, and the command ip."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator

IMDS = "169.254.169.254"


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


@contextlib.contextmanager
def at_imds_address() -> Iterator[None]:
    """Give the address of IMDS to the loopback device of this network namespace."""
    ip("address", "add", IMDS + "/32", "dev", "lo")
    try:
        yield
    finally:
        ip("address", "delete", IMDS + "/32", "dev", "lo")
