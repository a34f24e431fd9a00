# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Policy gates. A gate is open while its file exists and only trusted users can create that file."""

from __future__ import annotations

import os
from collections.abc import Mapping

from hook_runner.permissions import nearest_existing, permission_problem


def open_gates(gates: Mapping[str, str]) -> dict[str, bool]:
    """Return for each gate whether it is open: its file exists, and only trusted users can create it."""
    return {name: os.path.exists(path) and gate_problem(path) is None for name, path in gates.items()}


def gate_problem(path: str) -> str | None:
    """Return why users that are not trusted could open a gate, or None. The file need not exist."""
    there = nearest_existing(path)
    return permission_problem(there, os.path.dirname(there) if there == path else there)
