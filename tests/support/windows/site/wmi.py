# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A module `wmi` for Salt under Wine, whose own WMI ends Salt's queries with an error.

Salt's grains need one description of the operating system. Of all other classes there is no instance,
which Salt takes for a machine without this information.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

SERVER = 3
INSTANCES = {
    "Win32_OperatingSystem": [
        SimpleNamespace(
            Caption="Microsoft Windows Server 2022 Datacenter",
            ProductType=SERVER,
            Version="10.0.20348",
            Manufacturer="Microsoft Corporation",
        )
    ]
}


class WMI:
    """A connection, of which only queries for all instances of a class are used."""

    def __getattr__(self, name: str) -> Callable[..., list[Any]]:
        return lambda **_query: INSTANCES.get(name, [])
