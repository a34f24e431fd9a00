# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""One change of one event as JSON, in the shape that Event-Driven Ansible, Salt and this daemon share."""

from __future__ import annotations

import hashlib
import json
from datetime import datetime, timezone

from azure_scheduled_events.document import ScheduledEvent, escape_surrogates
from azure_scheduled_events.named_tuple import NamedTuple

SCHEMA = "azure_imds.scheduled_events/change/1"
REPORTED_BY = "hook_runner"


class ChangeBody(NamedTuple):
    """A change as it is sent.

    Attributes:
        id: of the delivery; a repeated delivery has the same.
        body: JSON in ASCII.
    """

    id: str
    body: bytes


def change_body(kind: str, event: ScheduledEvent, number: int, reporter: str, observed_at: datetime) -> ChangeBody:
    """Return a change as it is sent.

    The id depends on the content only: a daemon that could not write its spool and finds the same
    change again after a restart gives it the same id.

    Args:
        kind: appeared, changed, started or gone.
        event: as it is now; for gone as it was last.
        number: counts the changes of this event, from 1.
        reporter: this VM's resource name.
        observed_at: aware time of the document with the change.
    """
    shown = event.as_dict()
    reporter = escape_surrogates(reporter)
    identity = json.dumps([reporter, event.key, number, kind, shown], sort_keys=True)
    delivery_id = hashlib.sha256(identity.encode("ascii")).hexdigest()[:32]
    stamp = observed_at.astimezone(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    content = {
        "schema": SCHEMA,
        "id": delivery_id,
        "change": kind,
        "outcome": None,
        "event": shown,
        "observed_at": stamp,
        "reporter": reporter,
        "reported_by": REPORTED_BY,
        "resource_id": None,
    }
    return ChangeBody(delivery_id, json.dumps(content).encode("ascii"))
