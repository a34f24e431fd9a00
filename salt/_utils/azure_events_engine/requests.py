# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""Serves the requests of operators, which the runner sends."""

from __future__ import annotations

from typing import Any

from . import polling
from .answers import event_key, is_event_id
from .approvals import release_of, withheld
from .messages import Reply, Request
from .state import Hold, Maintenance, Order
from .state_update import StateUpdate
from .status_rows import event_rows, minion_rows

OPERATIONS = ("status", "fleet", "prepare", "recover", "approve", "hold", "release")
# holds of operators
_MAX_HOLDS = 1000


def serve(update: StateUpdate, request: Request) -> None:
    """Serve a request and reply."""
    update.add_action(Reply(request.request_id, _answer(update, request)))


def _answer(update: StateUpdate, request: Request) -> dict[str, Any]:
    if request.do not in OPERATIONS:
        return {"error": f"do: expected one of {', '.join(OPERATIONS)}, not {request.do!r}"}
    if request.do == "fleet":
        return {"rows": minion_rows(update)}
    if request.do == "status" and not request.event_id:
        return _rows(update)
    if not is_event_id(request.event_id):
        return {"error": f"event_id: expected the ID of an event, not {request.event_id!r}"}
    return _answer_about_event(update, request)


def _answer_about_event(update: StateUpdate, request: Request) -> dict[str, Any]:
    key = event_key(request.event_id)
    if request.do == "hold":
        return _hold(update, key, request)
    if key in update.over:
        return _rows(update, key)
    if key not in update.maintenances:
        return {"error": f"event {request.event_id} is not known to the engine; no minion that it affects lists it"}
    if request.do == "approve":
        return _approve(update, key, request)
    if request.do == "release":
        update.set_maintenance(key, hold=None, examine=True)
        update.save(key)
    elif request.do in ("prepare", "recover"):
        _try_again(update, key)
    return _rows(update, key)


def _rows(update: StateUpdate, key: str = "") -> dict[str, Any]:
    return {"rows": event_rows(update, key)}


def _hold(update: StateUpdate, key: str, request: Request) -> dict[str, Any]:
    known = update.maintenances.get(key)
    if known is None:
        if sum(1 for maintenance in update.maintenances.values() if maintenance.hold is not None) >= _MAX_HOLDS:
            return {"error": f"event {request.event_id} is not held: {_MAX_HOLDS} events are held already"}
        update.begin_maintenance(key, Maintenance(request.event_id))
    elif known.approval is not None:
        return {"error": f"event {request.event_id} is approved already; an approval cannot be taken back"}
    update.set_maintenance(key, hold=Hold(request.by, request.at), forced=None, examine=True)
    update.save(key)
    return _rows(update, key)


def _approve(update: StateUpdate, key: str, request: Request) -> dict[str, Any]:
    maintenance = update.maintenances[key]
    release = release_of(update, maintenance)
    if maintenance.approved:
        return _rows(update, key)
    if request.force:
        if not any(member.is_prepared for member in maintenance.members.values()):
            return {
                "error": f"event {request.event_id}: no minion that it affects is prepared, and the engine approves "
                "through such a minion only; to approve nevertheless run "
                f"salt MINION azure_events.approve event_ids={request.event_id} release_others=True"
            }
        order = Order(request.by, request.at, release.types, frozenset(release.vms))
        update.set_maintenance(key, forced=order, refusals={}, examine=True)
        update.save(key)
        return _rows(update, key)
    update.set_maintenance(key, refusals={}, examine=True)
    if maintenance.hold is not None or not release.is_permitted(forced=False):
        reason = withheld(maintenance, release) or "no minion that it affects lists it"
        return {
            "error": f"event {request.event_id} is withheld: {reason}",
            "rows": event_rows(update, key),
        }
    return _rows(update, key)


def _try_again(update: StateUpdate, key: str) -> None:
    """Retry failed steps at once. The minion decides whether there is anything to do."""
    for minion, member in update.maintenances[key].members.items():
        if not member.job:
            update.set_member(key, minion, tries=0, next_at=update.now, outcome="", reason="")
        polling.poll_now(update, minion)
