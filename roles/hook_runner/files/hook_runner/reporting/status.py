# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The state of the daemon: as data for `status --json`, as text, and as one line for systemd."""

from __future__ import annotations

from typing import Any

from azure_scheduled_events.document import escape_surrogates
from azure_scheduled_events.printable import printable
from azure_scheduled_events.timestamps import as_utc_text
from hook_runner.clock import ServerClock
from hook_runner.lifecycle.engine import Engine
from hook_runner.lifecycle.pause import described
from hook_runner.lifecycle.stage_plan import NEVER, hooks_for, not_recovered, retry_at
from hook_runner.record_store import RecordStore
from hook_runner.records import RECOVER, STAGES, EventRecord, HookRun
from hook_runner.reporting.imds_health import ImdsHealth
from hook_runner.reporting.in_force import as_lines


def to_dict(engine: Engine, health: ImdsHealth, clock: ServerClock, store: RecordStore) -> dict[str, Any]:
    """Return the state of the daemon as plain JSON values.

    Keys: resource_name, policy, leader, dry_run, imds (ok, confirmed, last_good_poll, stale_since, error,
    incomplete_since, errors), records (ok, error, since, set_aside: paths of what could not be used),
    events: a list of the common shape of an event with listed, named, readable (see `Sighting`),
    concerns_me, of_lost_records, seconds_left, stage, prepared,
    approval, approval_error, not_recovered (names of recover hooks), next_attempt (seconds, or
    null), reason, outcome, waiting and hooks (the latest run of each hook). The service adds
    version, configuration (see InForce.as_data) and paused (since, until, by, reason; null where no
    operator has paused the daemon).
    """
    return {
        "resource_name": engine.own_name,
        "policy": engine.runtime.settings.policy.name,
        "leader": engine.runtime.settings.leader,
        "dry_run": engine.runtime.settings.dry_run,
        "imds": {**health.as_data(), "confirmed": engine.approver.is_confirmed},
        "records": {
            "ok": store.error is None,
            "error": store.error,
            "since": None if store.failing_since is None else as_utc_text(store.failing_since),
            "set_aside": store.set_aside(),
        },
        "events": [_event(engine, record, clock) for record in engine.records],
    }


def is_healthy(data: dict[str, Any]) -> bool:
    """Return True if no state needs the attention of an operator.

    That is so if IMDS gives good documents without unreadable entries, records are written, this VM's name is
    known, the daemon is not paused, the disk does not differ from the configuration in force, and no event
    has a failed preparation, a failed approval or a recover hook that has not succeeded.
    """
    imds = data["imds"]
    sound = imds["ok"] and imds["incomplete_since"] is None and data["records"]["ok"] and bool(data["resource_name"])
    sound = sound and not data.get("paused")
    # the operator who changed the disk expects the change to be in force
    sound = sound and not data.get("configuration", {}).get("differs")
    return sound and all(map(_is_good_event, data["events"]))


def _is_good_event(event: dict[str, Any]) -> bool:
    is_refused = event.get("approval_error") is not None
    return event["prepared"] != "failed" and not is_refused and not event.get("not_recovered")


def _event(engine: Engine, record: EventRecord, clock: ServerClock) -> dict[str, Any]:
    latest = {(step.stage, step.hook): step for step in record.steps if not step.void}
    failed = not_recovered(engine.runtime.hooks, record)
    return {
        **record.event.as_dict(),
        "listed": record.sighting.listed,
        "named": sorted(map(escape_surrogates, record.sighting.named)),
        "readable": record.sighting.readable,
        "concerns_me": record.affects_this_vm,
        "of_lost_records": record.is_of_lost_records,
        "first_seen": as_utc_text(record.first_seen),
        "seconds_left": int(record.event.seconds_left(clock.now())),
        "stage": record.phase,
        "prepared": engine.preparation_state(record),
        "approval": record.approval or None,
        "approval_error": escape_surrogates(record.approval_error) or None,
        "not_recovered": [step.hook for step in failed],
        "next_attempt": _next_attempt(engine, record, failed, clock),
        "reason": escape_surrogates(record.attempt.explanation) or None,
        "outcome": record.outcome or None,
        "waiting": escape_surrogates(record.waiting_for) or None,
        "hooks": [
            {
                "stage": stage,
                "name": name,
                "state": step.state,
                "attempt": step.attempt,
                "reason": escape_surrogates(step.reason) or None,
            }
            for (stage, name), step in sorted(latest.items(), key=lambda item: (STAGES.index(item[0][0]), item[0][1]))
        ],
    }


def _next_attempt(engine: Engine, record: EventRecord, failed: list[HookRun], clock: ServerClock) -> int | None:
    """Return the seconds until the next run of a failed recover hook; None if no run is planned."""
    names = {step.hook: step for step in failed}
    times = [
        retry_at(hook, names[hook.name])
        for hook in hooks_for(engine.runtime.hooks, record, RECOVER)
        if hook.name in names
    ]
    seconds = [max(0.0, (at - clock.now()).total_seconds()) for at in times if at is not None and at != NEVER]
    return int(min(seconds)) if seconds else None


def to_text(data: dict[str, Any]) -> str:
    """Return the result of `to_dict` as text."""
    imds = data["imds"]
    lines = [
        "this VM    %s" % (data["resource_name"] or "not known yet: IMDS has not returned its name"),
        "policy     {}, leader {}{}".format(
            data["policy"], data["leader"], ", dry run: nothing is approved" if data["dry_run"] else ""
        ),
        "IMDS       %s"
        % ("good, last answer {}".format(imds["last_good_poll"]) if imds["ok"] else _error_summary(imds)),
    ]
    if data.get("paused"):
        lines.insert(0, f"PAUSED     {described(data['paused'])}")
    if "configuration" in data:
        lines[-1:-1] = as_lines(data["configuration"])
    if imds["incomplete_since"]:
        lines.append(
            "           unreadable entries since {}; until there are none, no event is taken for over".format(
                imds["incomplete_since"]
            )
        )
    records = data["records"]
    if not records["ok"]:
        lines.append(f"records    {records['error']}; since {records['since']}")
    lines += [
        f"records    {path} has what could not be used; remove it when you do not need it"
        for path in records["set_aside"]
    ]
    for event in data["events"]:
        lines += _lines(event)
    if not data["events"]:
        lines.append("events     none" if imds["ok"] else "events     none known; IMDS gives no good answer")
    return "\n".join(printable(line) for line in lines)


def _error_summary(imds: dict[str, Any]) -> str:
    if imds["stale_since"] is None:
        return "no answer yet; the first one may take two minutes"
    return f"stale since {imds['stale_since']}: {imds['error']}"


def _lines(event: dict[str, Any]) -> list[str]:
    about = f"{event['event_type']} {event['status']}, {'hits this VM' if event['concerns_me'] else 'hits others'}"
    about = (
        f"{about} ({', '.join(event['resources'])})"
        if not event["of_lost_records"]
        else "it stands for events whose records are lost"
    )
    lines = [f"event      {event['event_id']}", f"           {about}"]
    if event["status"] == "Scheduled" and event["not_before"]:
        lines.append("           not before %s, in %d s" % (event["not_before"], event["seconds_left"]))
    if event["concerns_me"]:
        lines.append(
            "           stage {}, prepared: {}, approval: {}".format(
                event["stage"], event["prepared"], event["approval"] or "none"
            )
        )
    if event.get("approval_error"):
        lines.append(f"           the approval failed: {event['approval_error']}")
    if event.get("not_recovered"):
        again = (
            "next attempt in %d s" % event["next_attempt"]
            if event["next_attempt"] is not None
            else "no further attempt"
        )
        failed = ", ".join("recover/" + name for name in event["not_recovered"])
        lines.append(f"           NOT RECOVERED: {failed}; {again}; see `azure-scheduled-events recover`")
    lines += ["           " + event[word] for word in ("reason", "waiting") if event[word]]
    for hook in event["hooks"]:
        why = f" ({hook['reason']})" if hook["reason"] else ""
        lines.append(f"           {hook['stage']}/{hook['name']} {hook['state']}{why}")
    return lines


def summary(engine: Engine, health: ImdsHealth) -> str:
    """Return systemd's status line, which changes only with the state."""
    if engine.pausing.current() is not None:
        return "paused; " + _one_line(engine, health)
    return _one_line(engine, health)


def _one_line(engine: Engine, health: ImdsHealth) -> str:
    if health.last_good is None:
        return (
            "waiting for the first answer of IMDS"
            if not health.error
            else "no answer of IMDS yet: " + printable(health.error)
        )
    if health.error:
        return "IMDS gives no good answer: " + printable(health.error)
    if not engine.records:
        return f"watching as {printable(engine.own_name or '?')}: no events"
    stages = {
        record.id: "NOT RECOVERED" if not_recovered(engine.runtime.hooks, record) else record.phase
        for record in engine.records[:3]
    }
    shown = [
        "lost records" if record.is_of_lost_records else f"{record.event.event_type} {record.event.status}"
        for record in engine.records[:3]
    ]
    shown = [f"{text}, {stages[record.id]}" for text, record in zip(shown, engine.records)]
    more = ", and %d more" % (len(engine.records) - 3) if len(engine.records) > 3 else ""
    return f"watching as {printable(engine.own_name or '?')}: {printable('; '.join(shown))}{more}"
