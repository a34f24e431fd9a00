# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The state of the daemon: as data for `status --json`, as text, and as one line for systemd."""

from __future__ import annotations

from typing import Any, Dict, Iterator, Mapping

from azure_scheduled_events.printable import escape_surrogates, printable
from azure_scheduled_events.timestamps import as_utc_text
from hook_runner.maintenance.hook_plan import HookPlan
from hook_runner.maintenance.record import NO_EVENT, EventRecord, Pause
from hook_runner.records import FAILED, INTERRUPTED, RECOVER, TIMEOUT
from hook_runner.reporting.history import event_data, ids_by_number, run_data
from hook_runner.runner import Runner

Json = Dict[str, Any]
_HOOK_WAITS = "hook_waits"


def to_data(runner: Runner) -> Json:
    """Return the state as JSON values; the control socket adds the version and `Configuration.as_data`."""
    settings, records, pause = runner.host.settings, runner.records, runner.records.state.pause
    return {
        "vm": runner.host.own_name or None,
        "policy": settings.policy.name,
        "leader": settings.leader,
        "dry_run": settings.dry_run,
        "paused": None if pause is None else _pause(pause),
        "maintenance": _maintenance(runner),
        "events": [_event(runner, record) for record in records.known],
        "imds": {**runner.health.as_data(), "confirmed": records.is_confirmed},
        "records": {
            "ok": records.is_durable,
            "error": records.error,
            "since": None if records.failing_since is None else as_utc_text(records.failing_since),
            "set_aside": runner.store.set_aside(),
        },
    }


def is_healthy(data: Mapping[str, Any]) -> bool:
    """Return True if no state needs an operator: those of exit code 1 of `status` in docs/hook-runner.md."""
    imds, maintenance = data["imds"], data["maintenance"]
    is_sound = imds["ok"] and imds["incomplete_since"] is None and data["records"]["ok"] and data["vm"] is not None
    # the operator who changed the disk expects the change to be in force
    is_sound = is_sound and data["paused"] is None and not data["configuration"]["differs"]
    is_recovered = maintenance is None or not maintenance["not_recovered"]
    return is_sound and is_recovered and not any(map(_has_failed, data["events"]))


def not_recovered(runner: Runner) -> dict[str, int]:
    """Return the recover hooks that have failed and not succeeded since, each with the seconds until its next run."""
    maintenance, now = runner.records.maintenance, runner.now
    if maintenance is None or maintenance.present:
        return {}
    plan = HookPlan(runner.host, maintenance, {}, now)
    latest = {run.name: run.state for run in maintenance.runs if run.stage == RECOVER}
    failed = [hook for hook in plan.not_recovered() if latest.get(hook.name) in (FAILED, TIMEOUT, INTERRUPTED)]
    return {hook.name: max(0, int(((plan.retry_at(hook) or now) - now).total_seconds())) for hook in failed}


def to_text(data: Mapping[str, Any]) -> str:
    """Return the answer to a request for the status as text."""
    return "\n".join(printable(line) for line in _lines(data))


def summary(runner: Runner) -> str:
    """Return systemd's status line, which changes only with the state."""
    health, paused = runner.health, "" if runner.records.state.pause is None else "paused; "
    if health.error:
        no_answer = "IMDS gives no good answer" if health.last_good else "no answer of IMDS yet"
        return f"{paused}{no_answer}: {printable(health.error)}"
    if health.last_good is None:
        return f"{paused}waiting for the first answer of IMDS"
    events = runner.records.known
    shown = [f"{record.event.event_type} {record.event.status}" for record in events[:3]]
    if runner.records.maintenance is not None:
        shown.insert(0, "NOT RECOVERED" if not_recovered(runner) else runner.machine.phase)
    more = f", and {len(events) - 3} more" if len(events) > 3 else ""
    state = printable("; ".join(shown) or "no events")
    return f"{paused}watching as {printable(runner.host.own_name or '?')}: {state}{more}"


def _has_failed(event: Mapping[str, Any]) -> bool:
    return event["affects_this_vm"] and (event["prepared"] == "failed" or event["approval_error"] is not None)


def _pause(pause: Pause) -> Json:
    until = None if pause.until is None else as_utc_text(pause.until)
    return {"since": as_utc_text(pause.since), "until": until, "by": pause.by, "reason": pause.reason or None}


def _maintenance(runner: Runner) -> Json | None:
    maintenance = runner.records.maintenance
    if maintenance is None:
        return None
    failed, ids = not_recovered(runner), ids_by_number(maintenance)
    return {
        "id": str(maintenance.number),
        "phase": runner.machine.phase,
        "since": as_utc_text(maintenance.began),
        "outcome": None if maintenance.present else maintenance.outcome,
        "lacks_events": maintenance.may_lack_events,
        "not_recovered": list(failed),
        "next_attempt": min(failed.values(), default=None),
        "hooks": [run_data(run, ids) for run in maintenance.runs],
    }


def _event(runner: Runner, record: EventRecord) -> Json:
    machine = runner.machine
    sighting, reason = runner.records.sightings.get(record.key), machine.reason(record)
    code, text = ("", "") if reason is None else (reason.code, reason.text)
    if runner.waiting_for and record.number != NO_EVENT:
        code, text = _HOOK_WAITS, f"the next hook waits for {runner.waiting_for}"
    return {
        **event_data(record, runner.host.own_name),
        "prepared": machine.prepared(record, runner.now),
        "seconds_left": int(record.event.seconds_left(runner.now)),
        "listed": sighting is not None and sighting.listed,
        "named": [] if sighting is None else sorted(sighting.named),
        "readable": bool(record.event.resources) if sighting is None else sighting.readable,
        "reason": escape_surrogates(text) or None,
        "reason_code": code or None,
    }


def _lines(data: Mapping[str, Any]) -> Iterator[str]:
    if data["paused"]:
        paused = data["paused"]
        until = f"until {paused['until']}" if paused["until"] else "until it is resumed"
        yield f"PAUSED     by {paused['by']} {until}{': ' + paused['reason'] if paused['reason'] else ''}"
    yield f"this VM    {data['vm'] or 'not known yet: IMDS has not returned its name'}"
    dry_run = ", dry run: nothing is approved" if data["dry_run"] else ""
    yield f"policy     {data['policy']}, leader {data['leader']}{dry_run}"
    yield from _configuration_lines(data["configuration"])
    imds, records = data["imds"], data["records"]
    yield f"IMDS       {'good, last answer ' + imds['last_good_poll'] if imds['ok'] else _imds_error(imds)}"
    if imds["incomplete_since"]:
        since = imds["incomplete_since"]
        yield f"           unreadable entries since {since}; until there are none, no event is taken for over"
    if not records["ok"]:
        yield f"records    {records['error']}; since {records['since']}"
    for path in records["set_aside"]:
        yield f"records    {path} has what could not be used; remove it when you do not need it"
    if data["maintenance"]:
        yield from _maintenance_lines(data["maintenance"])
    for event in data["events"]:
        yield from _event_lines(event)
    if not data["events"]:
        yield "events     none" if imds["ok"] else "events     none known; IMDS gives no good answer"


def _configuration_lines(configuration: Mapping[str, Any]) -> Iterator[str]:
    yield f"config     {configuration['path']}, read {configuration['loaded_at']}"
    yield f"hooks      {configuration['hooks_directory']}, read {configuration['loaded_at']}"
    if configuration["changed"]:
        changed = ", ".join(configuration["changed"])
        yield f"           the disk differs from what is in force: {changed}; reload the service"
    if configuration["refusal"]:
        yield f"           the latest reload was refused: {configuration['refusal']}"
    if configuration["restart_needed"]:
        keys = ", ".join(configuration["restart_needed"])
        yield f"           the new values of these keys need a restart: {keys}"


def _imds_error(imds: Mapping[str, Any]) -> str:
    if imds["stale_since"] is None:
        return "no answer yet; the first one may take two minutes"
    return f"stale since {imds['stale_since']}: {imds['error']}"


def _maintenance_lines(maintenance: Mapping[str, Any]) -> Iterator[str]:
    yield f"maintenance {maintenance['id']}, {maintenance['phase']}, since {maintenance['since']}"
    if maintenance["lacks_events"]:
        yield "           its record may lack events; documents show which events there are, and all recover hooks run"
    if maintenance["not_recovered"]:
        failed = ", ".join(f"{RECOVER}/{name}" for name in maintenance["not_recovered"])
        again = f"next attempt in {maintenance['next_attempt']} s"
        yield f"           NOT RECOVERED: {failed}; {again}; see `azure-scheduled-events recover`"
    # of each hook the latest run
    for hook in {(run["stage"], run["name"]): run for run in maintenance["hooks"]}.values():
        why = f" ({hook['reason']})" if hook["reason"] else ""
        yield f"           {hook['stage']}/{hook['name']} {hook['state']}{why}"


def _event_lines(event: Mapping[str, Any]) -> Iterator[str]:
    yield f"event      {event['event_id']}"
    affected = "affects this VM" if event["affects_this_vm"] else "affects other VMs"
    yield f"           {event['event_type']} {event['status']}, {affected} ({', '.join(event['resources'])})"
    if event["status"] == "Scheduled" and event["not_before"]:
        yield f"           not before {event['not_before']}, in {event['seconds_left']} s"
    prepared = f"prepared: {event['prepared']}, " if event["affects_this_vm"] else ""
    by = f" ({event['approval_by']})" if event["approval_by"] else ""
    yield f"           {prepared}approval: {event['approval'] or 'none'}{by}"
    if event["approval_error"]:
        yield f"           the approval failed: {event['approval_error']}"
    if event["reason"]:
        yield f"           {event['reason']}"
