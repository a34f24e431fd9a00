# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

from __future__ import annotations

import pytest

from ready_hooks.core.address import Address, address


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("/run/redis.sock", Address("/run/redis.sock", "", 0)),
        ("db1:6379", Address("", "db1", 6379)),
        ("10.0.0.4:9999", Address("", "10.0.0.4", 9999)),
        ("[::1]:6379", Address("", "::1", 6379)),
    ],
)
def test_address_is_a_path_or_host_and_port(given: str, expected: Address) -> None:
    assert (address(given), str(address(given))) == (expected, given)


@pytest.mark.parametrize(
    "given",
    ["admin.sock", "lb1", ":6379", "db1:", "db1:x", "lb1:0", "lb1:70000", "fd00::4:9999", "lb 1:9999", "", None, 6379],
)
def test_address_of_another_value_is_an_error(given: object) -> None:
    with pytest.raises(ValueError, match="expected"):
        address(given)
