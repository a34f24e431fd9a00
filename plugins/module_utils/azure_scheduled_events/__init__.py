# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Azure Scheduled Events for programs on the VM: read, compare, decide, wait, approve.

Needs ``requests``; imports neither Ansible nor Salt.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .changes import Change, changes
from .document import EventDocument, ScheduledEvent, parse_document
from .errors import ImdsError, ImdsRefused, ImdsUnreachable, ImdsUnreadable, OwnNameUnknown
from .imds import Imds
from .selection import Selection
from .tracking import Observation, Tracker

if TYPE_CHECKING:
    from .conditions import PolicyContext
    from .policy import Decision, Policy, PolicyError

__all__ = [
    "Change",
    "Decision",
    "EventDocument",
    "Imds",
    "ImdsError",
    "ImdsRefused",
    "ImdsUnreachable",
    "ImdsUnreadable",
    "Observation",
    "OwnNameUnknown",
    "Policy",
    "PolicyContext",
    "PolicyError",
    "ScheduledEvent",
    "Selection",
    "Tracker",
    "changes",
    "parse_document",
]

# Imported when first used: an Ansible module compiles every file that it imports in each run, and
# most modules need no policy.
_IMPORTED_LATER = {"Decision": "policy", "Policy": "policy", "PolicyError": "policy", "PolicyContext": "conditions"}


def __getattr__(name: str) -> Any:
    if name not in _IMPORTED_LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module("." + _IMPORTED_LATER[name], __name__), name)
