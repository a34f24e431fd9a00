# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The state of a hook runner, from the JSON of its command: `status --json` and `history --json`.

The JSON is not trusted. A member that is missing or of another type becomes null. An entry without an event ID is left
out.
"""

from __future__ import annotations

import json
import typing as t

# exit statuses of the command
PROBLEM, USAGE, NOT_RUNNING, NOT_PERMITTED, BAD_CONFIGURATION = 1, 2, 3, 77, 78

# values of `state`
RUNNING = "running"
NOT_INSTALLED_STATE = "not_installed"
NOT_RUNNING_STATE = "not_running"
NOT_PERMITTED_STATE = "not_permitted"
BAD_CONFIGURATION_STATE = "bad_configuration"
TOO_OLD_STATE = "too_old"
NO_ANSWER_STATE = "no_answer"

_BY_EXIT_STATUS = {
    USAGE: (TOO_OLD_STATE, "the command has no `status --json`; upgrade the hook runner"),
    NOT_RUNNING: (NOT_RUNNING_STATE, "the daemon does not run; start azure-scheduled-events.service"),
    NOT_PERMITTED: (NOT_PERMITTED_STATE, "this user may not read the status; use become or status_group"),
    BAD_CONFIGURATION: (BAD_CONFIGURATION_STATE, "the configuration is not usable; run `azure-scheduled-events check`"),
}
_TIMES = ("prepared", "approved", "started", "over", "recovered")
# a run in one of these states has not failed
_GOOD_RUNS = ("ok", "starting", "running")

Json = t.Dict[str, t.Any]


class Unreadable(Exception):
    """The command gave no status; ``state`` is why, as a code."""

    def __init__(self, state: str, problem: str) -> None:
        super().__init__(problem)
        self.state = state


def parse_status(exit_status: int, output: str, errors: str) -> Json:
    """Return the members of the status that the module documents.

    They are ``version``, ``resource_name``, ``policy``, ``leader``, ``dry_run``, ``paused``, ``imds_ok``,
    ``confirmed``, ``records_ok``, ``maintenance`` and ``events``. ``output`` and ``errors`` are what the command wrote
    to standard output and standard error.

    Raises:
        Unreadable: there is no status.
    """
    data = _decoded(output)
    if exit_status not in (0, PROBLEM):
        state, problem = _BY_EXIT_STATUS.get(
            exit_status, (NO_ANSWER_STATE, f"the command ended with status {exit_status}; run it by hand")
        )
        detail = _last_line(errors)
        raise Unreadable(state, f"{problem} ({detail})" if detail else problem)
    if not isinstance(data, dict) or not isinstance(data.get("events"), list):
        if isinstance(data, dict) and isinstance(data.get("error"), str):
            raise Unreadable(NO_ANSWER_STATE, f"{data['error']}; run `azure-scheduled-events status` by hand")
        raise Unreadable(NO_ANSWER_STATE, "the output is not the JSON of a status; run it by hand")
    if not isinstance(data.get("leader"), str) or "maintenance" not in data:
        raise Unreadable(TOO_OLD_STATE, "the status has no `leader` or no `maintenance`; upgrade the hook runner")
    hooks = _dicts(_member(data, "maintenance", "hooks"))
    return {
        "version": _text(data.get("version")),
        "resource_name": _text(data.get("vm")),
        "policy": _text(data.get("policy")),
        "leader": data["leader"],
        "dry_run": data.get("dry_run") is True,
        "paused": _texts_of(data.get("paused"), "since", "until", "by", "reason"),
        "imds_ok": _member(data, "imds", "ok") is True,
        "confirmed": _member(data, "imds", "confirmed") is True,
        "records_ok": _member(data, "records", "ok") is True,
        "maintenance": _maintenance(data),
        "events": [dict(_event(each, hooks), **dict.fromkeys(_TIMES)) for each in _with_id(data["events"])],
    }


def parse_history(output: str) -> list[Json]:
    """Return the events of `history --json` in the shape of `parse_status`, oldest first; [] if it is unreadable."""
    maintenances = _dicts(_decoded(output))
    return [
        _recorded(each, maintenance) for maintenance in maintenances for each in _with_id(maintenance.get("events"))
    ]


def parse_others(output: str) -> list[Json]:
    """Return the events of `history --others --json`, for which no hook ran, as `parse_history` does."""
    return [_recorded(each, {"ended": each.get("gone_at")}) for each in _with_id(_decoded(output))]


def add_times(events: t.Sequence[Json], history: t.Sequence[Json]) -> None:
    """Give events of the status the times of their records; the newest record of an ID is that of the event."""
    records = {record["key"]: record for record in history}
    for event in events:
        record = records.get(event["key"])
        if record is not None and record["over"] is None:
            event.update({name: record[name] for name in _TIMES})
            # the status is older than the history, or newer
            if event["prepared_state"] != "ok":
                event["prepared"] = None


def is_settled(event: t.Mapping[str, t.Any]) -> bool:
    """Return True if the preparation for the event has ended, or can no longer end."""
    return event["status"] != "Scheduled" or event["prepared_state"] in ("ok", "failed")


def has_reached(goal: str, wanted: t.Collection[str], known: Json, history: t.Sequence[Json]) -> bool:
    """Return True if nothing remains to wait for.

    That is so if each wanted event has reached the goal "prepared", or the host the goal "recovered", or if an event
    that is not wanted has appeared. ``wanted`` has keys of events, and is empty for all that affect this VM; ``known``
    is the result of `parse_status`.
    """
    mine = {event["key"]: event for event in known["events"] if event["affects_self"]}
    if wanted and not set(mine) <= set(wanted):
        return True
    if goal == "recovered":
        return not mine and known["maintenance"] is None
    over = {record["key"] for record in history if record["over"]}
    return all(is_settled(mine[key]) if key in mine else key in over for key in (wanted or mine))


def _event(entry: Json, hooks: t.Sequence[Json]) -> Json:
    """Return the members of an event, without its times; ``hooks`` are the runs of its maintenance."""
    names = ("event_type", "status", "resource_type", "not_before", "description", "source")
    latest = {
        str(each.get("name")): each.get("state")
        for each in hooks
        if each.get("stage") == "prepare" and each.get("event") == entry["event_id"]
    }
    return dict(
        {name: _text(entry.get(name)) for name in names},
        event_id=entry["event_id"],
        key=entry["event_id"].casefold(),
        resources=_texts(entry.get("resources")),
        duration_seconds=_number(entry.get("duration_seconds")),
        listed=entry.get("listed") is True,
        named=_texts(entry.get("named")),
        readable=entry.get("readable") is True,
        affects_self=entry.get("affects_this_vm") is True,
        prepared_state=_text(entry.get("prepared")),
        approval=_text(entry.get("approval")),
        approval_error=_text(entry.get("approval_error")),
        seconds_left=_number(entry.get("seconds_left")),
        waiting=_text(entry.get("reason")),
        failed_hooks=[f"prepare/{name} {state}" for name, state in latest.items() if state not in _GOOD_RUNS],
        outcome=_text(entry.get("outcome")),
    )


def _recorded(entry: Json, maintenance: Json) -> Json:
    """Return an event with the times of its last occurrence in its maintenance."""
    times: Json = {}
    for each in _dicts(maintenance.get("timeline")):
        if each.get("event") == entry["event_id"]:
            if each.get("what") == "taken-up":
                times.clear()
            times[str(each.get("what"))] = _text(each.get("at"))
    given_up_by = _text(maintenance.get("given_up_by"))
    return dict(
        _event(entry, _dicts(maintenance.get("hooks"))),
        given_up_by=given_up_by,
        prepared=times.get("prepared") if entry.get("prepared") == "ok" else None,
        approved=times.get("approved"),
        started=times.get("started"),
        over=_text(entry.get("gone_at")),
        recovered=None if given_up_by else _text(maintenance.get("ended")),
    )


def _maintenance(data: Json) -> Json | None:
    found = _texts_of(data["maintenance"], "id", "phase", "since")
    return found and dict(found, not_recovered=_texts(_member(data, "maintenance", "not_recovered")))


def _texts_of(given: t.Any, *names: str) -> Json | None:
    """Return these members; None only for what is surely null."""
    if given is None:
        return None
    known = given if isinstance(given, dict) else {}
    return {name: _text(known.get(name)) for name in names}


def _with_id(entries: t.Any) -> list[Json]:
    return [each for each in _dicts(entries) if isinstance(each.get("event_id"), str) and each["event_id"]]


def _member(data: Json, name: str, member: str) -> t.Any:
    found = data.get(name)
    return found.get(member) if isinstance(found, dict) else None


def _text(value: t.Any) -> str | None:
    return value if isinstance(value, str) else None


def _number(value: t.Any) -> int | None:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e15
    return int(value) if is_number else None


def _dicts(value: t.Any) -> list[Json]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _texts(value: t.Any) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def _decoded(output: str) -> t.Any:
    try:
        return json.loads(output)
    except (ValueError, RecursionError):
        return None


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1][:300] if lines else ""
