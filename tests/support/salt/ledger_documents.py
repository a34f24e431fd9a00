# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Documents of IMDS, and the ledger after a sequence of them."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from typing import Any

from azure_events_watch.ledger import Ledger, Notice, advance
from azure_scheduled_events import EventDocument, parse_document

NOON = datetime(2026, 11, 21, 12, 0, tzinfo=timezone.utc)


def document(*events: tuple[str, str], broken: bool = False) -> EventDocument:
    listed: list[Any] = [
        {
            "EventId": key,
            "EventStatus": status,
            "EventType": "Reboot",
            "ResourceType": "VirtualMachine",
            "Resources": ["vm1"],
            "NotBefore": "",
        }
        for key, status in events
    ]
    return parse_document(json.dumps({"DocumentIncarnation": 1, "Events": listed + ([None] if broken else [])}))


def after(*documents: EventDocument) -> tuple[Ledger, list[Notice]]:
    ledger = Ledger(0)
    events: list[Notice] = []
    for number, one in enumerate(documents):
        ledger, notices = advance(ledger, one, NOON + timedelta(seconds=number), lambda event: True)
        events += notices
    return ledger, events
