# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: GPL-3.0-or-later
"""Option 245 in the lease files of Linux."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events import (
    posix_dhcp_leases,
)

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=timezone.utc)

DHCLIENT = """
default-duid "\\000\\001";
lease {
  interface "eth0";
  fixed-address 10.0.0.4;
  option unknown-245 a8:3f:81:0f;
  expire 5 2026/11/20 08:00:00;
}
lease {
  interface "eth0";
  fixed-address 10.0.0.4;
  option unknown-245 a8:3f:81:10;
  option domain-name-servers 168.63.129.16;
  renew 6 2026/11/21 22:00:00;
  expire 0 2026/11/22 08:00:00;
}
"""


def found(tmp_path, text):
    (tmp_path / "lease").write_text(text, encoding="utf-8")
    return posix_dhcp_leases.lease_addresses([str(tmp_path / "*")], NOW)


def test_lease_addresses_of_dhclient_skip_expired_blocks(tmp_path):
    assert found(tmp_path, DHCLIENT) == ["168.63.129.16"]


def test_lease_addresses_have_the_newest_lease_first(tmp_path):
    assert found(tmp_path, DHCLIENT.replace("2026/11/20", "2026/11/23")) == ["168.63.129.16", "168.63.129.15"]


@pytest.mark.parametrize(
    "expiry, alive", [("never", True), ("epoch 1795348800", True), ("epoch 1", False), ("4 2026/99/99 08:00:00", False)]
)
def test_lease_addresses_read_every_form_of_expiry(tmp_path, expiry, alive):
    text = f"lease {{\n  option unknown-245 a8:3f:81:10;\n  expire {expiry};\n}}\n"
    assert found(tmp_path, text) == (["168.63.129.16"] if alive else [])


@pytest.mark.parametrize("value", ["a83f8110", "A8:3F:81:10", "168.63.129.16", '"168.63.129.16"'])
def test_lease_addresses_of_networkd_are_read(tmp_path, value):
    assert found(tmp_path, f"ADDRESS=10.0.0.4\nOPTION_245={value}\nLIFETIME=4294967295\n") == ["168.63.129.16"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "OPTION_245=\n",
        "OPTION_245=a83f81\n",
        "OPTION_245=zz:zz:zz:zz\n",
        "OPTION_245=999.1.1.1\n",
        "lease {",
        "\x00\xff",
    ],
)
def test_lease_addresses_without_a_usable_option_are_empty(tmp_path, text):
    assert found(tmp_path, text) == []


def test_lease_addresses_skip_an_unreadable_file(tmp_path):
    (tmp_path / "a-folder").mkdir()
    assert found(tmp_path, DHCLIENT) == ["168.63.129.16"]
