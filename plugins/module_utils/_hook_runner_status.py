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
_FAILED_RUNS = ("failed", "timeout", "stopped", "interrupted", "skipped")
_TIMES = ("prepared", "approved", "started", "over", "recovered")

Json = t.Dict[str, t.Any]


class Unreadable(Exception):
    """The command gave no status; ``state`` is why, as a code."""

    def __init__(self, state: str, problem: str) -> None:
        super().__init__(problem)
        self.state = state


def parse_status(exit_status: int, output: str, errors: str) -> Json:
    """Return the members of the status that the module documents.

    They are ``version``, ``resource_name``, ``policy``, ``leader``, ``dry_run``, ``paused``, ``imds_ok``,
    ``confirmed``, ``records_ok`` and ``events``. ``output`` and ``errors`` are what the command wrote to standard
    output and standard error.

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
    if not isinstance(data.get("leader"), str) or any(
        isinstance(each, dict) and "prepared" not in each for each in data["events"]
    ):
        raise Unreadable(TOO_OLD_STATE, "the status has no `leader` or no `prepared`; upgrade the hook runner")
    return {
        "version": _text(data.get("version")),
        "resource_name": _text(data.get("resource_name")),
        "policy": _text(data.get("policy")),
        "leader": data["leader"],
        "dry_run": data.get("dry_run") is True,
        "paused": _paused(data.get("paused")),
        "imds_ok": _member(data, "imds", "ok") is True,
        "confirmed": _member(data, "imds", "confirmed") is True,
        "records_ok": _member(data, "records", "ok") is True,
        "events": [_open_event(each) for each in data["events"] if _has_id(each)],
    }


def parse_history(output: str) -> list[Json]:
    """Return the events of `history --json` in the shape of `parse_status`, oldest first; [] if it is unreadable."""
    data = _decoded(output)
    if not isinstance(data, list):
        return []
    return [
        _recorded_event(each, each["event"]) for each in data if isinstance(each, dict) and _has_id(each.get("event"))
    ]


def add_times(events: t.Sequence[Json], history: t.Sequence[Json]) -> None:
    """Give events of the status the times of their records; the newest record of an ID is that of the event."""
    records = {record["key"]: record for record in history}
    for event in events:
        record = records.get(event["key"])
        if record is not None and record["stage"] != "closed":
            event.update({name: record[name] for name in _TIMES})
            # hooks that were prepared may have to run again
            if event["prepared_state"] != "ok":
                event["prepared"] = None


def is_settled(event: Json) -> bool:
    """Return True if the preparation for the event has ended, or can no longer end."""
    return event["stage"] != "prepare" or event["prepared_state"] in ("ok", "failed") or event["status"] != "Scheduled"


def has_reached(goal: str, wanted: t.Collection[str], events: t.Sequence[Json], history: t.Sequence[Json]) -> bool:
    """Return True if nothing remains to wait for.

    That is so if each wanted event has reached the goal, "prepared" or "recovered", or an event that is not wanted has
    appeared. ``wanted`` has keys of events, and is empty for all that affect this VM; ``events`` are those that are
    not closed.
    """
    mine = {event["key"]: event for event in events if event["affects_self"]}
    if wanted and not set(mine) <= set(wanted):
        return True
    if goal == "recovered":
        return not mine
    closed = {record["key"] for record in history if record["stage"] == "closed"}
    return all(is_settled(mine[key]) if key in mine else key in closed for key in (wanted or mine))


def _open_event(entry: Json) -> Json:
    hooks = [each for each in _list(entry.get("hooks")) if isinstance(each, dict)]
    failed = [
        f"{each.get('stage')}/{each.get('name')} {each.get('state')}"
        for each in hooks
        if each.get("stage") == "prepare" and each.get("state") in _FAILED_RUNS
    ]
    return dict(
        _event(entry),
        listed=entry.get("listed") is True,
        named=_texts(entry.get("named")),
        readable=entry.get("readable") is True,
        affects_self=entry.get("concerns_me") is True,
        stage=_text(entry.get("stage")),
        prepared_state=_text(entry.get("prepared")),
        approval=_text(entry.get("approval")),
        approval_error=_text(entry.get("approval_error")),
        seconds_left=_number(entry.get("seconds_left")),
        waiting=_text(entry.get("waiting")),
        failed_hooks=failed,
        not_recovered=_texts(entry.get("not_recovered")),
        outcome=_text(entry.get("outcome")),
        **dict.fromkeys(_TIMES),
    )


def _recorded_event(record: Json, event: Json) -> Json:
    timeline = [each for each in _list(record.get("timeline")) if isinstance(each, dict)]
    stages = record.get("stages") if isinstance(record.get("stages"), dict) else {}
    runs = [each for each in _list(stages.get("prepare")) if isinstance(each, dict) and not each.get("void")]
    closed, first_seen = _text(record.get("closed_at")), _text(record.get("first_seen"))
    latest = {each.get("hook"): each for each in runs}
    recovery = {
        each.get("hook"): each
        for each in _list(stages.get("recover"))
        if isinstance(each, dict) and not each.get("void")
    }
    not_recovered = [
        str(name) for name, each in sorted(recovery.items(), key=str) if each.get("state") not in ("ok", "skipped")
    ]
    ended = [_text(each.get("ended_at")) for each in latest.values()]
    is_first = record.get("first_status") == "Started"
    failed = [
        f"prepare/{each.get('hook')} {each.get('state')}" for each in latest.values() if each.get("state") != "ok"
    ]
    times = {
        # of an open event, `prepared_state` says whether the preparation has succeeded
        "prepared": None
        if is_first or None in ended or (closed and failed)
        else max([text for text in ended if text], default=first_seen),
        "approved": _time_of(timeline, "approved"),
        "started": first_seen if is_first else _time_of(timeline, "started"),
        "over": _text(record.get("gone_at")),
        "recovered": closed if closed and not not_recovered else None,
    }
    return dict(
        _event(event),
        affects_self=record.get("concerned") is True,
        stage="closed" if closed else None,
        prepared_state=None,
        approval=_text(_member(record, "approval", "state")),
        approval_error=_text(_member(record, "approval", "error")),
        seconds_left=None,
        waiting=None,
        failed_hooks=failed,
        not_recovered=not_recovered,
        outcome=_text(record.get("outcome")),
        **times,
    )


def _event(entry: Json) -> Json:
    """Return the members that the modules of this collection share, and the key."""
    names = ("event_type", "status", "resource_type", "not_before", "description", "source")
    return dict(
        {name: _text(entry.get(name)) for name in names},
        event_id=entry["event_id"],
        key=entry["event_id"].casefold(),
        resources=_texts(entry.get("resources")),
        duration_seconds=_number(entry.get("duration_seconds")),
    )


def _has_id(entry: t.Any) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("event_id"), str) and bool(entry["event_id"])


def _paused(given: t.Any) -> Json | None:
    if not given:
        return None
    known = given if isinstance(given, dict) else {}
    return {name: _text(known.get(name)) for name in ("since", "until", "by", "reason")}


def _time_of(timeline: t.Sequence[Json], what: str) -> str | None:
    """Return the time of the last entry of this kind."""
    return next((_text(each.get("at")) for each in reversed(timeline) if each.get("what") == what), None)


def _member(data: Json, name: str, member: str) -> t.Any:
    found = data.get(name)
    return found.get(member) if isinstance(found, dict) else None


def _text(value: t.Any) -> str | None:
    return value if isinstance(value, str) else None


def _number(value: t.Any) -> int | None:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e15
    return int(value) if is_number else None


def _list(value: t.Any) -> list[t.Any]:
    return value if isinstance(value, list) else []


def _texts(value: t.Any) -> list[str]:
    return [each for each in _list(value) if isinstance(each, str)]


def _decoded(output: str) -> t.Any:
    try:
        return json.loads(output)
    except (ValueError, RecursionError):
        return None


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1][:300] if lines else ""
