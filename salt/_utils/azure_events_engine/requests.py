# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""What an operator asks the engine for with the runner."""

from __future__ import annotations

from typing import Any

from . import looking
from .answers import event_key, is_event_id
from .approving import withheld
from .messages import Reply, Request
from .state import Approval, Hold, Maintenance
from .table import event_rows, minion_rows
from .turn import Turn

OPERATIONS = ("status", "fleet", "prepare", "recover", "approve", "hold", "release")
# of operators' holds for events that no minion lists
_MOST_HOLDS = 1000


def serve(turn: Turn, request: Request) -> None:
    """Do what is asked for, and reply."""
    turn.act(Reply(request.request_id, _answer(turn, request)))


def _answer(turn: Turn, request: Request) -> dict[str, Any]:
    if request.do not in OPERATIONS:
        return {"error": f"do: expected one of {', '.join(OPERATIONS)}, not {request.do!r}"}
    if request.do == "fleet":
        return {"rows": minion_rows(turn), "problem": turn.disk_error}
    if request.do == "status" and not request.event_id:
        return {"rows": event_rows(turn), "problem": turn.disk_error}
    if not is_event_id(request.event_id):
        return {"error": f"event_id: expected the ID of an event, not {request.event_id!r}"}
    key = event_key(request.event_id)
    if key in turn.over and request.do != "hold":
        return {"rows": event_rows(turn, key), "problem": turn.disk_error}
    if request.do == "hold":
        return _hold(turn, key, request)
    if key not in turn.maintenances:
        return {"error": f"event {request.event_id} is not known to the engine; no minion that it hits lists it"}
    if request.do == "release":
        turn.set_maintenance(key, hold=None, examine=True)
        turn.save(key)
    elif request.do == "approve":
        return _approve(turn, key, request)
    elif request.do in ("prepare", "recover"):
        _try_again(turn, key)
    return {"rows": event_rows(turn, key), "problem": turn.disk_error}


def _hold(turn: Turn, key: str, request: Request) -> dict[str, Any]:
    known = turn.maintenances.get(key)
    if known is None:
        if sum(1 for maintenance in turn.maintenances.values() if maintenance.hold is not None) >= _MOST_HOLDS:
            return {"error": f"event {request.event_id} is not held: {_MOST_HOLDS} events are held already"}
        turn.put_maintenance(key, Maintenance(request.event_id, last_word=turn.now))
    elif known.approval is not None:
        return {"error": f"event {request.event_id} is approved already; an approval cannot be taken back"}
    turn.set_maintenance(key, hold=Hold(request.by, request.at), forced=None, examine=True)
    turn.save(key)
    return {"rows": event_rows(turn, key), "problem": turn.disk_error}


def _approve(turn: Turn, key: str, request: Request) -> dict[str, Any]:
    maintenance = turn.maintenances[key]
    reason, readies = withheld(turn, maintenance)
    if maintenance.approved:
        return {"rows": event_rows(turn, key)}
    if request.force:
        if not any(member.record == "prepared" and member.listed for member in maintenance.members.values()):
            return {
                "error": f"event {request.event_id}: no minion that it hits is prepared, and the engine approves through such a minion only; to approve nevertheless run "
                f"salt MINION azure_events.approve event_ids={request.event_id} release_others=True"
            }
        turn.set_maintenance(key, forced=Approval("", request.by, request.at, True), refusals={}, examine=True)
        turn.save(key)
        return {"rows": event_rows(turn, key)}
    turn.set_maintenance(key, refusals={}, examine=True)
    if maintenance.hold is not None or not readies or not all(ready.ok for ready in readies):
        return {
            "error": f"event {request.event_id} is withheld: {reason or 'no minion that it hits lists it'}",
            "rows": event_rows(turn, key),
        }
    return {"rows": event_rows(turn, key)}


def _try_again(turn: Turn, key: str) -> None:
    """What failed before is tried again at once; the minion decides whether there is anything to do."""
    for minion, member in turn.maintenances[key].members.items():
        if not member.job:
            turn.set_member(key, minion, tries=0, next_at=turn.now, outcome="", reason="")
        looking.want_soon(turn, minion)
