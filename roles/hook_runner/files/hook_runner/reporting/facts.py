# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The facts for Ansible about this VM's events, and whether they still hold."""

from __future__ import annotations

import json
import math
from datetime import datetime, timezone
from typing import Any

from azure_scheduled_events.document import escape_surrogates
from azure_scheduled_events.event_types import advises
from azure_scheduled_events.timestamps import as_utc_text
from hook_runner.lifecycle.engine import Engine
from hook_runner.lifecycle.stage_plan import not_recovered
from hook_runner.records import EventRecord
from hook_runner.reporting.imds_health import ImdsHealth

# a longer file is not one of the daemon's
MAX_BYTES = 4 << 20


def to_dict(engine: Engine, health: ImdsHealth) -> dict[str, Any]:
    """Return this VM's events as facts. Members that `event_facts` returns, too, have its names and meanings.

    Keys: available, reason, resource_name, paused, and

    - events: the common shape of an event, with stage, prepared, approval and waiting as in `status`
    - pending: missing if no event is known and available is false
    - recovering: events that are over, whose recovery is not finished, with not_recovered
    """
    known = health.as_data()
    reason = ""
    if engine.own_name is None:
        reason = "the name of this VM is not known yet"
    elif not known["ok"]:
        reason = known["error"] or "IMDS has not answered yet"
    elif known["incomplete_since"] is not None:
        reason = "the document of IMDS has unreadable entries"
    records = [record for record in engine.records if record.affects_this_vm]
    listed = [_event(engine, record) for record in records if record.gone_at is None]
    facts: dict[str, Any] = {
        "available": not reason,
        "reason": escape_surrogates(reason),
        "resource_name": escape_surrogates(engine.own_name),
        "events": listed,
        "recovering": [
            {
                **_event(engine, record),
                "not_recovered": [step.hook for step in not_recovered(engine.runtime.hooks, record)],
            }
            for record in records
            if record.gone_at is not None
        ],
        "paused": engine.pausing.current() is not None,
    }
    if listed or not reason:
        facts["pending"] = not all(advises(event["event_type"]) for event in listed)
    return facts


def _event(engine: Engine, record: EventRecord) -> dict[str, Any]:
    return {
        **record.event.as_dict(),
        "stage": record.phase,
        "prepared": engine.preparation_state(record),
        "approval": record.approval or None,
        "waiting": escape_surrogates(record.waiting_for) or None,
    }


def with_validity(facts: dict[str, Any], now: float, stale_after: float, boot: str) -> dict[str, Any]:
    """Return the facts with written_at, valid_until, valid_until_epoch, stale_after, boot_id, and stale: false.

    Args:
        facts: see `to_dict`.
        now: seconds since 1970 by the host's own clock, with which readers compare.
        stale_after: seconds for which the facts hold.
        boot: identifies this boot of the host.
    """
    until = math.ceil(now + stale_after)
    return {
        **facts,
        "written_at": _stamp(now),
        "stale_after": int(stale_after),
        "valid_until": _stamp(until),
        "valid_until_epoch": until,
        "boot_id": boot,
        "stale": False,
    }


def read(path: str, now: float, boot: str) -> dict[str, Any]:
    """Return the content of a file of facts, with `stale` as it is now.

    Args:
        path: the file.
        now: seconds since 1970.
        boot: identifies this boot of the host.

    Raises:
        OSError: it cannot be read.
        ValueError: it is not a file of the daemon.
    """
    with open(path, "rb") as file:
        data = file.read(MAX_BYTES + 1)
    facts = json.loads(data.decode("utf-8")) if len(data) <= MAX_BYTES else None
    until = facts.get("valid_until_epoch") if isinstance(facts, dict) else None
    after = facts.get("stale_after") if isinstance(facts, dict) else None
    if not isinstance(facts, dict) or not isinstance(until, int) or not isinstance(after, int):
        raise ValueError(f"{path}: it is not a file of facts of this service; remove it")
    # a host's clock that was set back must not make old facts valid for long
    holds = until - after - 1 <= now < until and facts.get("boot_id") == boot
    return {**facts, "stale": facts.get("stale") is not False or not holds}


def as_bytes(facts: dict[str, Any]) -> bytes:
    """Return the content of the file."""
    return (json.dumps(facts, indent=1) + "\n").encode("ascii")


def _stamp(seconds: float) -> str:
    return as_utc_text(datetime.fromtimestamp(seconds, timezone.utc))
