# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Answers the requests that come over the control socket."""

from __future__ import annotations

from typing import Any, Mapping

from hook_runner import __version__, event_ids, record_files
from hook_runner.clock import ServerClock
from hook_runner.lifecycle.approvals import ManualAnswer
from hook_runner.lifecycle.engine import Engine
from hook_runner.record_store import RecordStore
from hook_runner.reporting import status
from hook_runner.reporting.imds_health import ImdsHealth
from hook_runner.reporting.in_force import InForce
from hook_runner.service.poller import Poller

# records in one answer: the main loop does nothing else while it answers
MOST_RECORDS = 200


class ControlRequests:
    """The requests of the command: status, history, pause, resume, approve and recover."""

    def __init__(
        self,
        engine: Engine,
        store: RecordStore,
        health: ImdsHealth,
        clock: ServerClock,
        in_force: InForce,
        poller: Poller,
    ) -> None:
        self._engine, self._store, self._health = engine, store, health
        self._clock, self._in_force, self._poller = clock, in_force, poller

    def answer(self, request: Mapping[str, Any], user: str) -> Mapping[str, Any]:
        """Return the answer to one request; ``user``: the name of the client's user."""
        verb = request.get("ask")
        if verb == "status":
            return self._status()
        if verb == "history":
            return record_files.stored(self._store.directory, MOST_RECORDS)._asdict()
        if verb in ("pause", "resume"):
            answer = self._engine.pausing.asked(request, user)
            self._engine.tick()
            return answer
        if verb == "approve":
            return self._approve(request, user)
        if verb == "recover":
            return self._recover(request, user)
        return {"error": "unknown request"}

    def refresh_last_poll(self) -> None:
        """Note the time of the last poll. The poller does not wake the main loop for an unchanged document."""
        at = self._poller.last_good
        if at is not None and not self._health.error:
            self._health.unchanged_document_at(self._clock, at)

    def _status(self) -> dict[str, Any]:
        self.refresh_last_poll()
        data = status.to_dict(self._engine, self._health, self._clock, self._store)
        pause = self._engine.pausing.current()
        paused = None if pause is None else pause.as_data()
        configuration = self._in_force.as_data()
        return {**data, "version": __version__, "configuration": configuration, "paused": paused}

    def _approve(self, request: Mapping[str, Any], user: str) -> dict[str, Any]:
        found = self._matching(request.get("event_id"))
        if len(found) > 1:
            return {"found": False, "candidates": found}
        if not found:
            return {"found": False}
        force, others = request.get("force") is True, request.get("release_others") is True
        return _manual_answer(self._engine.approve_manually(found[0], user, force, others))

    def _recover(self, request: Mapping[str, Any], user: str) -> dict[str, Any]:
        """Repeat or end a recovery; the beginning of an id means an ended event before a listed one."""
        found = self._matching(request.get("event_id"), is_over=True) or self._matching(request.get("event_id"))
        if len(found) > 1:
            return {"found": False, "candidates": found}
        if not found:
            return {"found": False}
        return _manual_answer(self._engine.recover_manually(found[0], user, request.get("give_up") is True))

    def _matching(self, event_id: object, is_over: bool = False) -> list[str]:
        """Return the ids that a request may mean: of present events, or of ended events that are not recovered."""
        known = [record.event.event_id for record in self._engine.records if (record.gone_at is not None) == is_over]
        return event_ids.matching_ids(event_id, known) if isinstance(event_id, str) else []


def _manual_answer(answer: ManualAnswer | None) -> dict[str, Any]:
    if answer is None:
        return {"found": False}
    return {"found": True, **answer._asdict()}
