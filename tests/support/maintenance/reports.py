# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The plan and the report of a maintenance run, from the custom statistics that Ansible prints."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

from support.maintenance.fleet import Fleet
from support.simulator_process import Simulator


def reporting(azure: Simulator, folder: Path, names: tuple[str, ...] = ("vm1", "vm2"), **more: dict[str, Any]) -> Fleet:
    """Return a fleet whose runs print the custom statistics."""
    return with_statistics(Fleet(azure, folder, names, **more))


def with_statistics(fleet: Fleet) -> Fleet:
    fleet.hosts.environment["ANSIBLE_SHOW_CUSTOM_STATS"] = "1"
    return fleet


def rows(ran: subprocess.CompletedProcess[str]) -> dict[str, dict[str, Any]]:
    """Return the rows of the report by host."""
    return {row["host"]: row for row in all_rows(ran)}


def all_rows(ran: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    """Return the rows of the report, one for each host and event."""
    found: list[dict[str, Any]] = _statistics(ran)["maintenance_report"]
    return found


def planned(ran: subprocess.CompletedProcess[str]) -> dict[str, dict[str, Any]]:
    """Return the planned events by their first host."""
    return {event["hosts"][0]: event for event in _statistics(ran)["maintenance_plan"]}


def _statistics(ran: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    match = re.search(r"^\tRUN: (\{.*\})$", ran.stdout, re.MULTILINE)
    assert match, ran.stdout
    found: dict[str, Any] = json.loads(match[1])
    return found
