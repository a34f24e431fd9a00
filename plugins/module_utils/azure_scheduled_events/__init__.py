# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Azure Scheduled Events for programs on the VM: read, compare, decide, wait, approve.

Needs ``requests``; imports neither Ansible nor Salt. Policies are in the module ``policy``: an Ansible module compiles
every file that it imports in each run, and most modules need none.
"""

from __future__ import annotations

from .changes import Change, changes
from .document import EventDocument, ScheduledEvent, parse_document
from .errors import ImdsError, ImdsRefused, ImdsUnreachable, ImdsUnreadable, OwnNameUnknown
from .imds import Imds
from .selection import Selection
from .tracking import Observation, Tracker

__all__ = [
    "Change",
    "EventDocument",
    "Imds",
    "ImdsError",
    "ImdsRefused",
    "ImdsUnreachable",
    "ImdsUnreadable",
    "Observation",
    "OwnNameUnknown",
    "ScheduledEvent",
    "Selection",
    "Tracker",
    "changes",
    "parse_document",
]
