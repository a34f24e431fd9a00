# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The report of a maintenance run as data."""

from __future__ import annotations

import json
import re
import subprocess
from typing import Any


def rows(ran: subprocess.CompletedProcess[str]) -> dict[str, dict[str, Any]]:
    """Return the rows of the report by host, from the custom statistics."""
    match = re.search(r"^\tRUN: (\{.*\})$", ran.stdout, re.MULTILINE)
    assert match, ran.stdout
    return {row["host"]: row for row in json.loads(match[1])["maintenance_report"]}
