# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Answers the requests that come over the control socket."""

from __future__ import annotations

import os
import pwd
from datetime import datetime, timedelta
from typing import Any, Mapping

from azure_scheduled_events.timestamps import parse_time
from hook_runner import __version__, event_ids, record_files
from hook_runner.maintenance.approvals import Answer
from hook_runner.maintenance.record import ApprovalRequest
from hook_runner.reporting import history, status
from hook_runner.reporting.imds_health import ImdsHealth
from hook_runner.runner import Runner
from hook_runner.service.configuration_source import Configuration

# maintenances in one answer: the main loop does nothing else while it answers
MOST_MAINTENANCES = 200


class ControlRequests:
    """The requests of the command: status, history, pause, resume, approve and recover."""

    def __init__(self, runner: Runner, health: ImdsHealth, configuration: Configuration) -> None:
        self._runner, self._health, self._configuration = runner, health, configuration

    def answer(self, request: Mapping[str, Any], uid: int) -> Mapping[str, Any]:
        """Return the answer to one request of the user with this number."""
        verb = request.get("ask")
        if verb == "status":
            data = status.to_data(self._runner, self._health)
            return {"version": __version__, **data, "configuration": self._configuration.as_data()}
        if verb == "history":
            return self._history(request)
        user = _name_of(uid)  # not before: a directory service may be slow
        if verb == "pause":
            until = _end(request, self._runner.now)
            return self._runner.pause(user, until, str(request.get("reason") or ""))._asdict()
        if verb == "resume":
            return self._runner.resume(user)._asdict()
        if verb == "approve":
            return self._approve(request, user)
        if verb == "recover":
            return self._recover(request, user)
        return {"error": "unknown request"}

    def _history(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the newest maintenances, at most as many as ``most`` says (all without it), and MOST_MAINTENANCES."""
        directory, asked = self._runner.store.directory, request.get("most")
        most = min(max(0, asked), MOST_MAINTENANCES) if isinstance(asked, int) else MOST_MAINTENANCES
        data = history.to_data(record_files.stored(directory, most))
        closed = len(record_files.numbers(os.path.join(directory, record_files.HISTORY)))
        stored = closed + (self._runner.records.maintenance is not None)
        if stored > most == MOST_MAINTENANCES != asked:
            text = f"the service gives the newest {most} of {stored} maintenances; root sees all with `history --all`"
            data["missing"] = [*data["missing"], text]
        return data

    def _approve(self, request: Mapping[str, Any], user: str) -> dict[str, Any]:
        keys = {record.event.event_id: record.key for record in self._runner.records.known}
        found = event_ids.matching_ids(str(request.get("event_id")), keys)
        if len(found) != 1:
            return {"found": False, **({"candidates": found} if found else {})}
        asked = ApprovalRequest(user, request.get("force") is True, request.get("release_others") is True)
        return _found(self._runner.approve(keys[found[0]], asked))

    def _recover(self, request: Mapping[str, Any], user: str) -> dict[str, Any]:
        """Repeat or end the recovery; an id that is given has to be that of the maintenance, or of an event of it."""
        maintenance = self._runner.records.maintenance
        if request.get("id") is not None:
            known = [] if maintenance is None else [history.maintenance_data(maintenance, self._runner.own_name)]
            if not history.matching(str(request["id"]), known):
                return {"found": False}
        return _found(self._runner.recover(user, request.get("give_up") is True))


def _found(answer: Answer | None) -> dict[str, Any]:
    return {"found": False} if answer is None else {"found": True, **answer._asdict()}


def _end(request: Mapping[str, Any], now: datetime) -> datetime | None:
    """Return the end of the pause that a request asks for; None for a pause that does not end by itself.

    1. A text in ``until`` is an ISO time. One that cannot be read counts as now, and the pause does not begin.
    2. A number in ``seconds`` counts from now, up to the end of the calendar.
    3. A request without one of these has no end.
    """
    until, seconds = request.get("until"), request.get("seconds")
    if isinstance(until, str):
        return parse_time(until) or now
    if isinstance(seconds, (int, float)):
        try:
            return now + timedelta(seconds=seconds)
        except (OverflowError, ValueError):
            return datetime.max.replace(tzinfo=now.tzinfo)
    return None


def _name_of(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"
