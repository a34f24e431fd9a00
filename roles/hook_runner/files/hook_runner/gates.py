# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Gates of the policy: a file that is there says go, if only those who are trusted can have put it there."""

from __future__ import annotations

import os
from collections.abc import Mapping

from hook_runner.permissions import permission_problem


def open_gates(gates: Mapping[str, str], owners: frozenset[int]) -> dict[str, bool]:
    """Which gates are open: their file exists, and nobody but `owners` can have made it."""
    return {name: os.path.exists(path) and gate_problem(path, owners) is None for name, path in gates.items()}


def gate_problem(path: str, owners: frozenset[int]) -> str | None:
    """Why others than `owners` might open a gate, as one sentence; None where they cannot. The file need not be there."""
    there = path
    while not os.path.lexists(there) and there != "/":
        there = os.path.dirname(there)
    return permission_problem(there, os.path.dirname(there) if there == path else there, owners)
