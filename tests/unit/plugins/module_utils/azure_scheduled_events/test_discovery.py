# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: GPL-3.0-or-later
"""The choice between the usual address of IMDS and those of DHCP, for VMs outside a virtual network."""

from __future__ import annotations

import pytest
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.discovery import (
    discover_endpoint,
)

USUAL = "http://169.254.169.254"
LEASED = "168.63.129.16"


def discovered(accepting, leased=(LEASED,)):
    tried = []

    def answers(endpoint, timeout):
        tried.append(endpoint)
        assert 0 < timeout <= 3
        return endpoint in accepting

    return discover_endpoint(3.0, lambda: list(leased), answers), tried


def test_discovery_prefers_the_usual_address():
    assert discovered([USUAL, "http://168.63.129.16"]) == (USUAL, [USUAL])


@pytest.mark.parametrize("endpoint", ["http://168.63.129.16", "http://168.63.129.16:8080"])
def test_discovery_tries_the_leased_address_on_both_ports(endpoint):
    assert discovered([endpoint])[0] == endpoint


def test_discovery_tries_the_addresses_in_the_order_of_the_leases():
    first, second = "http://168.63.129.17", "http://168.63.129.16"
    found, tried = discovered([first, second], leased=("168.63.129.17", LEASED))
    assert (found, tried) == (first, [USUAL, first])


def test_discovery_without_an_answer_returns_the_usual_address():
    assert discovered([])[0] == USUAL


def test_discovery_without_a_lease_does_not_connect():
    assert discovered([], leased=()) == (USUAL, [])
