# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Answers the requests that come over the control socket."""

from __future__ import annotations

import os
import pwd
from datetime import datetime, timedelta
from typing import Any, Mapping

from azure_scheduled_events.options import parse_seconds
from azure_scheduled_events.timestamps import parse_time
from hook_runner import __version__, record_files
from hook_runner.maintenance.record import ApprovalRequest
from hook_runner.reporting import history, status
from hook_runner.runner import Runner
from hook_runner.service.configuration_source import Configuration

# maintenances in one answer: the main loop does nothing else while it answers
MOST_MAINTENANCES = 200


class ControlRequests:
    """The requests of the command: status, history, pause, resume, approve and recover."""

    def __init__(self, runner: Runner, configuration: Configuration) -> None:
        self._runner, self._configuration = runner, configuration

    def answer(self, request: Mapping[str, Any], uid: int) -> Mapping[str, Any]:
        """Return the answer to one request of the user with this number."""
        verb = request.get("ask")
        if verb == "status":
            data = status.to_data(self._runner)
            return {"version": __version__, **data, "configuration": self._configuration.as_data()}
        if verb == "history":
            return self._history(request)
        user = _name_of(uid)  # not before: a directory service may be slow
        if verb == "pause":
            return self._pause(request, user)
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
        found = record_files.stored(directory, most)
        data = history.to_data(found)
        has_closed = record_files.HISTORY not in found.unreadable
        closed = len(record_files.numbers(os.path.join(directory, record_files.HISTORY))) if has_closed else 0
        stored = closed + (self._runner.records.maintenance is not None)
        if stored > most == MOST_MAINTENANCES != asked:
            text = f"the service gives the newest {most} of {stored} maintenances; root sees all with `history --all`"
            data["missing"] = [*data["missing"], text]
        return data

    def _pause(self, request: Mapping[str, Any], user: str) -> Mapping[str, Any]:
        """Begin a pause, which ends at ``until``; without it, it does not end by itself."""
        until, reason = request.get("until"), str(request.get("reason") or "")
        try:
            end = None if until is None else moment(str(until), self._runner.now)
        except ValueError as error:
            return {"error": str(error)}
        return self._runner.pause(user, end, reason)._asdict()

    def _approve(self, request: Mapping[str, Any], user: str) -> dict[str, Any]:
        known = {record.event.event_id: record for record in self._runner.records.known}
        found = history.matching_ids(str(request.get("event_id")), known)
        if len(found) != 1:
            return {"found": False, **({"candidates": found} if found else {})}
        asked = ApprovalRequest(user, request.get("force") is True, request.get("release_others") is True)
        return {"found": True, **self._runner.approve(known[found[0]], asked)._asdict()}

    def _recover(self, request: Mapping[str, Any], user: str) -> dict[str, Any]:
        """Repeat or end the recovery; an id that is given has to be that of the maintenance, or of an event of it."""
        maintenance = self._runner.records.maintenance
        if request.get("id") is not None:
            known = [] if maintenance is None else [history.maintenance_data(maintenance, self._runner.host.own_name)]
            if not history.matching(str(request["id"]), known):
                return {"found": False}
        return {"found": True, **self._runner.recover(user, request.get("give_up") is True)._asdict()}


def moment(text: str, now: datetime) -> datetime:
    """Return the time of a text: ``30m``, ``2h`` or ``5d`` from now; or ISO 8601, in UTC where it has no zone.

    Raises ValueError for any other text.
    """
    time = parse_time(text)
    if time is not None:
        return time
    try:
        seconds = parse_seconds(text)
    except ValueError:
        seconds = 0.0
    if seconds <= 0:
        raise ValueError(f"expected a time such as 30m, 2h or 2026-11-21T18:00:00Z, not {text!r}")
    return now + timedelta(seconds=seconds)


def _name_of(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"
