# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The address of IMDS, and why the process in the namespace could not start the command."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

IMDS_ADDRESS = "169.254.169.254"
IMDS_PORT = 80


class Step(Enum):
    """The steps of the process, in this order."""

    UNSHARE = "unshare"
    MAP_USER = "map-user"
    ADD_ADDRESS = "add-address"
    BIND = "bind"
    EXECUTE = "execute"


class Failure(NamedTuple):
    """The last message of the process, a list in JSON: the ``step`` that failed, and the error of the kernel."""

    step: str
    code: int
    text: str
