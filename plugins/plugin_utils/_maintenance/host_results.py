# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks the results of the modules that the role runs: a host may return anything, and the run decides for all."""

from __future__ import annotations

import typing as t

from ...module_utils.azure_scheduled_events.document import ScheduledEvent

_TEXTS = ("resource_name", "fault_domain", "boot", "server_time")
_EVENT_TEXTS = ("last_not_before", "started", "over", "prepared", "outcome")
# of each event of a hook runner, except lists of texts
_STATUS_MEMBERS: t.Mapping[str, tuple[type, ...]] = {
    **{name: (str,) for name in ("event_id", "key")},
    **{name: (str, type(None)) for name in ("event_type", "status", "not_before", "prepared_state")},
    **{name: (str, type(None)) for name in ("prepared", "approved", "started", "over", "recovered")},
    **{name: (bool,) for name in ("affects_self", "listed", "readable")},
    "seconds_left": (int, type(None)),
}

Result = t.Dict[str, t.Any]


def checked(result: Result, keyed: bool = False) -> Result:
    """Return the result of a module that has events or a note; a failure if its shape is another one.

    ``keyed`` says whether each event has its ``key``.
    """
    problem = _problem(result, keyed)
    return {"failed": True, "msg": f"the result of the module: {problem}; examine the host"} if problem else result


def is_status(given: t.Mapping[str, t.Any]) -> bool:
    """Return True if it has the shape of an available result of module hook_runner_info."""
    events = [given.get(name) for name in ("events", "history")]
    maintenance = given.get("maintenance", False)
    return (
        isinstance(given.get("paused"), (dict, type(None)))
        and _is_text_or_none(given.get("resource_name"))
        and isinstance(given.get("leader"), str)
        and (maintenance is None or (isinstance(maintenance, dict) and _are_texts(maintenance.get("not_recovered"))))
        and all(isinstance(each, list) and all(map(_is_status_event, each)) for each in events)
    )


def are_approvals(given: t.Any) -> bool:
    """Return True if it has the shape of ``approvals`` of module event_approve."""
    return isinstance(given, list) and all(
        isinstance(each, dict) and all(isinstance(each.get(name), str) for name in ("outcome", "reason"))
        for each in given
    )


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
    problems = (_problem_of_event(event, f"{where}[{number}]", keyed) for number, event in enumerate(events))
    return next(filter(None, problems), "")


def _problem_of_event(event: Result, where: str, keyed: bool) -> str:
    try:
        ScheduledEvent.from_json(event, where)
    except ValueError as error:
        return str(error)
    for name in _EVENT_TEXTS:
        if not _is_text_or_none(event.get(name)):
            return f"{where}: {name} is not a text"
    if "not_before" not in event:
        return f"{where}: not_before is missing"
    if keyed and not _has_key_of_id(event):
        return f"{where}: key is not that of event_id"
    return ""


def _is_status_event(given: t.Any) -> bool:
    return (
        isinstance(given, dict)
        and all(isinstance(given.get(name, ...), kinds) for name, kinds in _STATUS_MEMBERS.items())
        and all(_are_texts(given.get(name)) for name in ("resources", "named", "failed_hooks"))
        and _has_key_of_id(given)
    )


def _has_key_of_id(event: Result) -> bool:
    """Return True if an event has the key of its ID: what is decided by the key is sent with the ID."""
    return bool(event.get("key") == event["event_id"].casefold())


def _are_texts(value: t.Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _is_text_or_none(value: t.Any) -> bool:
    return value is None or isinstance(value, str)
