# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Reads the kernel's tables of TCP sockets, on a little-endian machine."""

from __future__ import annotations

import sys

import pytest

from ready_hooks.hooks import connections

pytestmark = pytest.mark.skipif(sys.byteorder != "little", reason="the tables are of a little-endian machine")

HEADER = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
END = "00:00000000 00000000     0        0 12345 1 0000000000000000 20 4 30 10 -1\n"
IPV4 = f"""{HEADER}   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 {END}\
   1: 0B004D0A:01BB 10813FA8:C0DE 01 00000000:00000000 {END}"""
IPV6 = f"""{HEADER}   0: 0000000000000000FFFF00000B004D0A:01BB 0000000000000000FFFF000010813FA8:C0DF \
01 00000000:00000000 {END}   1: 000000FD000000000000000001000000:01BB 000000FD000000000000000002000000:C0E0 \
04 00000001:00000000 {END}   2: 000000FD000000000000000001000000:01BB 000000FD000000000000000002000000:C0E1 \
04 000001F5:00000000 {END}"""


def test_parse_table_reads_port_peer_and_state() -> None:
    listening, established = connections.parse_table(IPV4.splitlines())
    assert (listening.port, listening.is_open) == (8080, False)
    assert (established.port, str(established.peer), established.is_open) == (443, "168.63.129.16", True)


def test_parse_table_turns_a_mapped_address_into_an_ipv4_address() -> None:
    mapped, closed, closed_with_data = connections.parse_table(IPV6.splitlines())
    assert (mapped.port, str(mapped.peer), mapped.is_open) == (443, "168.63.129.16", True)
    assert (str(closed.peer), closed.is_open) == ("fd00::2", False)
    assert closed_with_data.is_open


@pytest.mark.parametrize(
    ("state", "unacknowledged", "is_open"),
    [
        ("01", 0, True),
        ("08", 0, False),  # CLOSE_WAIT: the client has closed its side
        ("08", 1, True),
        ("09", 1, False),  # LAST_ACK: so has the server, and its FIN is one byte
        ("09", 2, True),
        ("06", 0, False),  # TIME_WAIT
        ("0A", 0, False),  # LISTEN
        ("0A", 5, False),
    ],
)
def test_connection_is_open_as_long_as_data_can_be_lost(state: str, unacknowledged: int, is_open: bool) -> None:
    row = f"   0: 0100007F:1F90 0100007F:C0DE {state} {unacknowledged:08X}:00000000 {END}"
    (found,) = connections.parse_table([HEADER, row])
    assert found.is_open is is_open


@pytest.mark.parametrize("value", ["10.0.0.0/8", "168.63.129.16", "fe80::/10", "10.1.2.3/8"])
def test_network_accepts_addresses_and_networks(value: str) -> None:
    assert connections.network(value)


@pytest.mark.parametrize("value", ["", "probe", "10.0.0.0/33", 10, True])
def test_network_refuses_other_text(value: object) -> None:
    with pytest.raises(ValueError, match=r".+"):
        connections.network(value)
