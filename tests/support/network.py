# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A network namespace of the tests, the address of IMDS in it, and the command ip."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator

import pytest

IMDS = "169.254.169.254"
# runs a command in a network namespace of its own
IN_OWN_NETWORK = ("unshare", "--net", "--")


def skip_reason() -> str | None:
    """Return why this machine has no network namespace for tests, or None."""
    if os.geteuid() != 0:
        return "needs root"
    for program in ("unshare", "ip"):
        if not shutil.which(program):
            return f"needs the program {program}"
    tried = subprocess.run(
        [*IN_OWN_NETWORK, "ip", "link", "set", "lo", "up"], capture_output=True, text=True, check=False
    )
    return f"network namespaces are not allowed here: {tried.stderr.strip()}" if tried.returncode else None


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


def start_loopback() -> None:
    """Start the loopback device, which is the only one of a network namespace of the tests; skip without such one."""
    links = subprocess.run(["ip", "-brief", "link"], check=True, capture_output=True, text=True).stdout.split("\n")
    if [link.split()[0] for link in links if link] != ["lo"]:
        pytest.skip("these tests change addresses and routes: run them as root by python -m support.hosts.namespaces")
    ip("link", "set", "lo", "up")


@contextlib.contextmanager
def at_imds_address() -> Iterator[None]:
    """Give the address of IMDS to the loopback device of this network namespace."""
    ip("address", "add", IMDS + "/32", "dev", "lo")
    try:
        yield
    finally:
        ip("address", "delete", IMDS + "/32", "dev", "lo")
