# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks the results of the modules of the role: a host may return anything, and the run decides for all hosts."""

from __future__ import annotations

import typing as t

_TEXTS = ("resource_name", "fault_domain", "boot", "server_time")
_REQUIRED = ("event_id", "event_type", "status")
_EVENT_TEXTS = ("not_before", "last_not_before", "started", "over", "prepared", "outcome", "resource_type", "source")

Result = t.Dict[str, t.Any]


def checked(result: Result, keyed: bool = False) -> Result:
    """Return the result of a module that has events or a note; a failure if its shape is another one.

    ``keyed`` says whether each event has its ``key``.
    """
    problem = _problem(result, keyed)
    return {"failed": True, "msg": f"the result of the module: {problem}; examine the host"} if problem else result


def _problem(result: Result, keyed: bool) -> str:
    for name in _TEXTS:
        if not _is_text_or_none(result.get(name)):
            return f"{name} is not a text"
    note = result.get("note")
    if not (note is None or isinstance(note, dict)):
        return "note is not a dictionary"
    return _problem_of_events(result.get("events", []), "events", keyed) or (
        "" if note is None else _problem_of_events(note.get("events"), "note.events", False)
    )


def _problem_of_events(events: t.Any, where: str, keyed: bool) -> str:
    if not isinstance(events, list):
        return f"{where} is not a list"
    for number, event in enumerate(events):
        problem = _problem_of_event(event, keyed) if isinstance(event, dict) else "not a dictionary"
        if problem:
            return f"{where}[{number}]: {problem}"
    return ""


def _problem_of_event(event: Result, keyed: bool) -> str:
    for name in _REQUIRED:
        if not isinstance(event.get(name), str):
            return f"{name} is not a text"
    for name in _EVENT_TEXTS:
        if not _is_text_or_none(event.get(name)):
            return f"{name} is not a text"
    resources = event.get("resources")
    if not isinstance(resources, list) or not all(isinstance(vm, str) for vm in resources):
        return "resources is not a list of names"
    if "not_before" not in event:
        return "not_before is missing"
    # what is decided by the key is sent with the ID
    if keyed and event.get("key") != event["event_id"].casefold():
        return "key is not that of event_id"
    return ""


def _is_text_or_none(value: t.Any) -> bool:
    return value is None or isinstance(value, str)
