# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""All statements with their checks: importing the modules registers them."""

from __future__ import annotations

import re

from . import document_checks, error_checks, http_checks, incarnation_checks, instance_checks, life_checks, name_checks
from .verdict import STATEMENTS, Statement

MODULES = (http_checks, document_checks, error_checks, life_checks, incarnation_checks, name_checks, instance_checks)


def statements() -> list[Statement]:
    """Return the statements that a recording can settle, in the order of the reference."""
    return sorted(STATEMENTS.values(), key=lambda each: order(each.number))


def order(number: str) -> list[tuple[int, str]]:
    """Return the key that sorts numbers such as 1.10 and 2.1 (4a)."""
    return [(int(digits), letter) for digits, letter in re.findall(r"(\d+)([a-z]?)", number)]
