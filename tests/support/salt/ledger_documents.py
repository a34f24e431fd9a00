# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Documents of IMDS, and the ledger after a sequence of them."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone

from azure_events_watch.ledger import Ledger, Notice, advance
from azure_scheduled_events import EventDocument, parse_document
from support.salt.scripted import ScriptedImds

NOON = datetime(2026, 11, 21, 12, 0, tzinfo=timezone.utc)


def document(*events: tuple[str, str]) -> EventDocument:
    listed = [ScriptedImds.event(key, "vm1", status=status) for key, status in events]
    return parse_document(json.dumps({"DocumentIncarnation": 1, "Events": listed}))


def after(*documents: EventDocument, ledger: Ledger = Ledger(0)) -> tuple[Ledger, list[Notice]]:
    """Return the ledger after these documents, one a second, and the changes."""
    tracker = ledger.tracker()
    notices: list[Notice] = []
    for number, one in enumerate(documents):
        sent = one._replace(sent_at=float(number), sent_by=float(number))
        ledger, changed = advance(ledger, tracker, sent, NOON + timedelta(seconds=number), lambda event: True)
        notices += [entry.notice for entry in changed]
    return ledger, notices
