# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Azure Scheduled Events for programs that run on the VM: read them, tell what changed, decide, wait, approve.

Needs ``requests``; imports nothing of Ansible or Salt.
"""

from __future__ import annotations

from .changes import Change, carried_over, changes
from .document import EventDocument, ScheduledEvent, parse_document
from .errors import ImdsError, ImdsRefused, ImdsUnreachable, ImdsUnreadable, OwnNameUnknown
from .imds import Imds
from .policy import Decision, Policy, PolicyError
from .predicates import Situation
from .selection import Selection

__all__ = [
    "Change",
    "Decision",
    "EventDocument",
    "Imds",
    "ImdsError",
    "ImdsRefused",
    "ImdsUnreachable",
    "ImdsUnreadable",
    "OwnNameUnknown",
    "Policy",
    "PolicyError",
    "ScheduledEvent",
    "Selection",
    "Situation",
    "carried_over",
    "changes",
    "parse_document",
]
