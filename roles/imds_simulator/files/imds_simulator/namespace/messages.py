# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Messages between the simulator and the process in the namespace, as JSON."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

IMDS_ADDRESS = "169.254.169.254"
IMDS_PORT = 80


class Request(NamedTuple):
    """The first message to the process: ``sockets`` messages [HOST, PORT] follow, one for each socket."""

    address: str
    sockets: int


class Step(Enum):
    """The steps of the process, in this order."""

    UNSHARE = "unshare"
    MAP_USER = "map-user"
    ADD_ADDRESS = "add-address"
    BIND = "bind"
    EXECUTE = "execute"


class Failure(NamedTuple):
    """The last message of the process: the ``step`` that failed, and the error of the kernel."""

    step: str
    code: int
    text: str
