# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import base64
import socket
import struct

import pytest
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.endpoint import (
    DEFAULT_ENDPOINT,
)
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.errors import (
    ImdsUnreachable,
)
from ansible_collections.azure_imds.scheduled_events.plugins.plugin_utils._windows_hosts.host_discovery import (
    discover_from_host,
)
from ansible_collections.azure_imds.scheduled_events.plugins.plugin_utils._windows_hosts.host_module import HostModule

NOW = 1_000_000.0
REFUSED = {"failure": {"kind": "unreachable", "connected": False, "reason": "refused", "message": "refused"}}
HANGING = {"failure": {"kind": "unreachable", "connected": True, "reason": "timeout", "message": "hangs"}}
NOT_FOUND = {"status": 404, "headers": [], "body": ""}


def leased(*addresses, expires=NOW + 60):
    """Return the DHCP options of one interface for each address."""
    return [
        base64.b64encode(struct.pack("<5I", 245, 0, 4, 0, int(expires)) + socket.inet_aton(address)).decode()
        for address in addresses
    ]


def search(replies, dhcp_options=()):
    """Return the endpoint, and the base URLs to which the host was asked to connect."""
    tried = []

    def execute(options):
        base = options["url"].partition("/metadata")[0]
        tried.append(base)
        assert options["dhcp_options"] is True
        reply = replies.get(base, REFUSED)
        if isinstance(reply, Exception):
            raise reply
        return {**reply, "dhcp_options": dhcp_options}

    module = HostModule(execute, lambda: None)
    return discover_from_host(module, 3.0, lambda: NOW), tried


def test_usual_address_needs_one_run():
    assert search({DEFAULT_ENDPOINT: NOT_FOUND}, leased("10.0.0.9")) == (DEFAULT_ENDPOINT, [DEFAULT_ENDPOINT])
    assert search({}) == (DEFAULT_ENDPOINT, [DEFAULT_ENDPOINT])


@pytest.mark.parametrize("reply", [NOT_FOUND, HANGING])
def test_leased_address_that_accepts_a_connection_is_found(reply):
    found, tried = search({"http://10.0.0.9:8080": reply}, leased("10.0.0.9"))
    assert found == "http://10.0.0.9:8080"
    assert tried == [DEFAULT_ENDPOINT, "http://10.0.0.9", "http://10.0.0.9:8080"]


def test_address_that_accepts_nothing_leaves_the_usual_one():
    assert search({}, leased("10.0.0.9"))[0] == DEFAULT_ENDPOINT


def test_search_of_many_addresses_is_bounded():
    assert len(search({}, leased(*(f"10.0.0.{number}" for number in range(1, 200))))[1]) == 5


@pytest.mark.parametrize(
    "dhcp_options",
    [
        None,
        {},
        [None],
        ["not base64!"],
        ["Prüfung"],
        ["9QAA"],
        leased("10.0.0.9", expires=NOW),
    ],
    ids=str,
)
def test_unusable_options_name_no_address(dhcp_options):
    assert search({"http://10.0.0.9": NOT_FOUND}, dhcp_options) == (DEFAULT_ENDPOINT, [DEFAULT_ENDPOINT])


def test_connection_that_is_lost_in_the_search_is_unreachable():
    with pytest.raises(ImdsUnreachable) as raised:
        search({"http://10.0.0.9": OSError("lost")}, leased("10.0.0.9"))
    assert raised.value.connected
