# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""What must not be, and was."""

from __future__ import annotations

from typing import NamedTuple


class Violation(NamedTuple):
    """Which invariant, by a short name, and what was seen."""

    invariant: str
    text: str

    def __str__(self) -> str:
        return "{}: {}".format(*self)
