# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A separate network: these tests run by `python -m support.hosts.namespaces` and share no address with others."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.network import IMDS, ip, start_loopback


@pytest.fixture(scope="session", autouse=True)
def loopback() -> None:
    start_loopback()


@pytest.fixture
def unroutable() -> Iterator[None]:
    """A network with a route to the address, on which no host answers, not even with an error."""
    ip("link", "add", "here", "type", "veth", "peer", "name", "there")
    try:
        ip("link", "set", "there", "up")
        ip("link", "set", "here", "up")
        ip("address", "add", "10.0.0.4/24", "dev", "here")
        ip("route", "add", IMDS + "/32", "dev", "here")
        # without a known neighbour the kernel itself would give up after three seconds
        ip("neighbour", "add", IMDS, "lladdr", "02:00:00:00:00:01", "dev", "here")
        yield
    finally:
        ip("link", "delete", "here")
