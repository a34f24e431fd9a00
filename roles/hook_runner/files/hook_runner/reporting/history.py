# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The history of events, as a text with a timeline and as plain data.

Texts of IMDS and hooks are not trusted: the text form has only printable characters of them.
"""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any, Sequence

from azure_scheduled_events.document import ScheduledEvent, escape_surrogates
from azure_scheduled_events.printable import printable
from hook_runner.records import ACCEPTED, REFUSED, SENT, STAGES, EventRecord, HookRun

# the text form cuts longer texts and lists; the data has all of them
MAX_TEXT = 2000
MAX_NAMES = 20


def to_dict(records: Sequence[EventRecord]) -> list[dict[str, Any]]:
    """Return the records as plain JSON values, in the same order.

    Times are ISO 8601 in UTC with milliseconds; unknown values are null. For each record::

        event          its last observation, in the shape of the Ansible modules and Salt functions
        life           1, or more if the same event id came back after its end
        first_seen     time of the first observation; first_type, first_status: its type and status then
        concerned      whether it ever affected this VM
        seen_started   whether it was ever observed as Started
        gone_at        time of its end, or null
        outcome        "completed" or "unknown", or null before the end
        closed_at      time when its recovery was finished, or null
        approval       state ("sent", "accepted", "refused" or null), reason, attempts, asked_by (user of
                       a manual request, or null), error (of the last request, or null)
        stages         for "prepare", "emergency", "started" and "recover" the list of runs, each with
                       id, hook, attempt, state, reason, started_at, ended_at, seconds, exit_status
                       (negative: the signal), output (its end), void (why its effect does not hold any
                       more, or null)
        timeline       a list of entries, each with at, what, detail

    Texts are unchanged, including control characters; json.dumps escapes those.
    """
    return [_record_data(record) for record in records]


def as_text(records: Sequence[EventRecord]) -> str:
    """Return the records as text, in the same order, with an empty line between them; no final line break."""
    if not records:
        return "no events"
    return "\n\n".join("\n".join(_record_lines(record)) for record in records)


def _record_data(record: EventRecord) -> dict[str, Any]:
    return {
        "event": record.event.as_dict(),
        "life": record.occurrence,
        "first_seen": _iso(record.first_seen),
        "first_type": escape_surrogates(record.first_type),
        "first_status": escape_surrogates(record.first_status),
        "concerned": record.affects_this_vm,
        "seen_started": record.seen_started,
        "gone_at": _iso(record.gone_at),
        "outcome": record.outcome or None,
        "closed_at": _iso(record.closed_at),
        "approval": {
            "state": record.approval or None,
            "reason": escape_surrogates(record.approval_reason) or None,
            "attempts": record.approval_attempts,
            "asked_by": escape_surrogates(record.approval_asked_by) or None,
            "error": escape_surrogates(record.approval_error) or None,
        },
        "stages": {stage: [_step_data(step) for step in record.steps if step.stage == stage] for stage in STAGES},
        "timeline": [
            {"at": _iso(at), "what": escape_surrogates(what), "detail": escape_surrogates(detail)}
            for at, what, detail in record.timeline
        ],
    }


def _step_data(step: HookRun) -> dict[str, Any]:
    return {
        "id": step.id,
        "hook": escape_surrogates(step.hook),
        "attempt": step.attempt,
        "state": step.state,
        "reason": escape_surrogates(step.reason) or None,
        "started_at": _iso(step.started_at),
        "ended_at": _iso(step.ended_at),
        "seconds": _seconds(step),
        "exit_status": step.exit_status,
        "output": escape_surrogates(step.output),
        "void": escape_surrogates(step.void) or None,
    }


def _record_lines(record: EventRecord) -> list[str]:
    event = record.event
    lines = [
        "event {}{}".format(
            _truncated(event.event_id), ", life %d" % record.occurrence if record.occurrence > 1 else ""
        )
    ]
    lines.append(f"  what       {_event_summary(event)}")
    lines.append(f"  hits       {_names(event.resources)}{'' if record.affects_this_vm else ' (not this VM)'}")
    if event.description:
        lines.append(f"  says       {_truncated(event.description)}")
    lines.append(f"  approval   {_approval(record)}")
    lines.append(f"  outcome    {_outcome(record)}")
    lines.append("  timeline   (UTC)")
    lines.extend(_timeline_lines(record))
    for stage in STAGES:
        steps = [step for step in record.steps if step.stage == stage]
        if steps:
            lines.append(f"  {stage}")
            for step in steps:
                lines.extend(_step_lines(step))
    return lines


def _event_summary(event: ScheduledEvent) -> str:
    parts = [
        "{} by {}, {}".format(
            _truncated(event.event_type) or "unknown type",
            _truncated(event.source or "") or "unknown source",
            _truncated(event.status) or "no status",
        )
    ]
    if event.not_before is not None:
        parts.append(f"not before {_clock(event.not_before)[:19]} UTC")
    if event.duration is not None:
        parts.append(f"expected to take {_duration_text(event.duration.total_seconds())}")
    return ", ".join(parts)


def _names(names: tuple[str, ...]) -> str:
    shown = ", ".join(_truncated(name) for name in names[:MAX_NAMES]) or "no VM by name"
    return shown if len(names) <= MAX_NAMES else "%s and %d more" % (shown, len(names) - MAX_NAMES)


def _approval(record: EventRecord) -> str:
    times = "%d request%s" % (record.approval_attempts, "" if record.approval_attempts == 1 else "s")
    states = {
        ACCEPTED: "accepted after %s",
        SENT: "sent, not known to have arrived, after %s",
        REFUSED: "refused, after %s",
    }
    state = states[record.approval] % times if record.approval in states else "none"
    if record.approval_error:
        state += f" ({_truncated(record.approval_error)})"
    if record.approval_reason:
        state += f": {_truncated(record.approval_reason)}"
    if record.approval_asked_by:
        state += f" (asked for by {_truncated(record.approval_asked_by)})"
    return state


def _outcome(record: EventRecord) -> str:
    if record.gone_at is None:
        return "not over"
    text = f"{_truncated(record.outcome)}, over since {_clock(record.gone_at)[:19]} UTC"
    return text if record.closed_at is not None else text + ", recovery not done"


def _timeline_lines(record: EventRecord) -> list[str]:
    width = max((len(_truncated(entry.what)) for entry in record.timeline), default=0)
    return [
        ("    %s  %-*s  %s" % (_clock(at), width, _truncated(what), _truncated(detail))).rstrip()
        for at, what, detail in record.timeline
    ]


def _step_lines(step: HookRun) -> list[str]:
    parts = [_truncated(step.hook), _truncated(step.state)]
    seconds = _seconds(step)
    if seconds is not None and step.state != "skipped":
        parts.append(f"after {_duration_text(seconds)}")
    end = ""
    if step.exit_status is not None:
        end = "exit status %d" % step.exit_status if step.exit_status >= 0 else "signal %d" % -step.exit_status
        parts.append(end)
    if step.attempt > 1:
        parts.append("attempt %d" % step.attempt)
    if step.void:
        parts.append(f"void ({_truncated(step.void)})")
    line = f"    {'  '.join(parts)}"
    if step.reason and step.reason != end:
        line += f": {_truncated(step.reason)}"
    return [line] + [f"      | {printable(text.expandtabs())}".rstrip() for text in step.output.splitlines()]


def _seconds(step: HookRun) -> float | None:
    if step.started_at is None or step.ended_at is None:
        return None
    return round((step.ended_at - step.started_at).total_seconds(), 3)


def _duration_text(seconds: float) -> str:
    if seconds < 60:
        return f"{round(seconds, 1):g} s"
    if seconds < 3600:
        return "%d min %d s" % divmod(round(seconds), 60)
    return "%d h %d min" % divmod(round(seconds / 60), 60)


def _truncated(text: str) -> str:
    return printable(text if len(text) <= MAX_TEXT else text[:MAX_TEXT] + "...")


def _clock(time: datetime) -> str:
    """Return a time such as 2026-11-21 12:00:00.123, in UTC."""
    return time.astimezone(timezone.utc).replace(tzinfo=None).isoformat(" ", "milliseconds")


def _iso(time: datetime | None) -> str | None:
    return (
        None
        if time is None
        else time.astimezone(timezone.utc).replace(tzinfo=None).isoformat("T", "milliseconds") + "Z"
    )
