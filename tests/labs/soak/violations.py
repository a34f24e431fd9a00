# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

from __future__ import annotations

from typing import NamedTuple


class Violation(NamedTuple):
    """The short name of the invariant, and the observation."""

    invariant: str
    text: str

    def __str__(self) -> str:
        return "{}: {}".format(*self)
