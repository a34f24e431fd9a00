# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Checks of DocumentIncarnation (docs/reference/scheduled-events.md 2.5)."""

from __future__ import annotations

import json

from .evidence import Document, Evidence, resources_of
from .verdict import Verdict, confirms, contradicts, is_open, judged, seen, statement


def _content(document: Document) -> list[str]:
    """Return the events without order and letter case, which mean nothing (docs/reference/scheduled-events.md 1.4)."""
    events = [{**each, "Resources": sorted(resources_of(each))} for each in document.events]
    return sorted(json.dumps(each, sort_keys=True).lower() for each in events)


@statement("2.5.1", "D")
def rises_with_changes(evidence: Evidence) -> Verdict:
    """DocumentIncarnation rises when Events changes; the same number means the same events."""
    pairs = [(one, two) for one, two in evidence.pairs() if one.run == two.run]
    changed = [(one, two) for one, two in pairs if _content(one) != _content(two)]
    good = [two.line for one, two in changed if two.incarnation > one.incarnation]
    bad = [two.line for one, two in changed if two.incarnation == one.incarnation]
    return judged(good, bad, "needs a change of Events", "the same number for other events")


@statement("2.5.2", "O")
def begins_at_one(evidence: Evidence) -> Verdict:
    """DocumentIncarnation begins at 1, with an empty array."""
    zero = [each.line for each in evidence.documents if each.incarnation < 1]
    if zero:
        return contradicts(zero, "below 1")
    first = evidence.documents[:1]
    if first and first[0].incarnation == 1 and not first[0].events:
        return confirms([first[0].line])
    return is_open("needs the first document of a new group")


@statement("2.5.3", "O")
def may_jump(evidence: Evidence) -> Verdict:
    """DocumentIncarnation may rise by more than 1 between two polls."""
    pairs = [(one, two) for one, two in evidence.pairs() if one.run == two.run]
    return seen([two.line for one, two in pairs if two.incarnation > one.incarnation + 1], "it did not")


@statement("2.5.6", "A")
def may_go_back(evidence: Evidence) -> Verdict:
    """DocumentIncarnation may go back without a day of silence."""
    back = [
        two.line for one, two in evidence.pairs() if two.incarnation < one.incarnation and two.time - one.time < 86400
    ]
    return seen(back, "it did not")
