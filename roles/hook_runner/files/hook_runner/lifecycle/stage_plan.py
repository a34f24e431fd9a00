# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The next hook of a stage, the time that it has, and the result of the stage. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Container, Iterable, Iterator, Mapping, Sequence

from azure_scheduled_events.event_types import is_chosen
from azure_scheduled_events.hook_input import margin_within, preparation_seconds
from azure_scheduled_events.urgency import Urgency, most_urgent_first
from hook_runner.hooks.discovery import WHOLE_DIRECTORY, Hook
from hook_runner.lifecycle.hook_pairs import is_same_preparation, partner
from hook_runner.records import (
    FAILED,
    INTERRUPTED,
    OK,
    PREPARE,
    RECOVER,
    RUNNING,
    SKIPPED,
    STOPPED,
    TIMEOUT,
    EventRecord,
    HookRun,
)

Hooks = Mapping[str, Sequence[Hook]]

# runs of a hook that the end of the host, or a change of the event, interrupts
MAX_ATTEMPTS = 3
# seconds before a recover hook that failed is run again: doubled each time, up to the second value
FIRST_RECOVER_PAUSE, LONGEST_RECOVER_PAUSE = 10.0, 600.0
# a time that never comes
NEVER = datetime.max.replace(tzinfo=timezone.utc)


def hooks_for(hooks: Hooks, record: EventRecord, stage: str) -> list[Hook]:
    """Return the hooks of a stage for this type of event, in the order in which they run.

    It is the order of `discover_hooks`: by file name. Without `types` a hook runs for all types but those that only
    advise. A recover hook also runs, whatever the type is now, for what it undoes: for its pair that has run for the
    event, and without `types` and a pair for any prepare hook that has. It also runs for lost records.
    """
    return [
        hook
        for hook in hooks.get(stage, ())
        if is_chosen(record.event.event_type, hook.settings.types or None)
        or (stage == RECOVER and _undoes_own(hooks, record, hook))
    ]


def _undoes_own(hooks: Hooks, record: EventRecord, hook: Hook) -> bool:
    if record.is_of_lost_records:
        return True
    prepared_by = partner(hooks, RECOVER, hook.name)
    if prepared_by is None and hook.settings.types:
        return False
    return has_prepared(hooks, record, prepared_by)


def is_done(hook: Hook, step: HookRun | None) -> bool:
    """Return True if a hook has had its run, of which `step` is the latest.

    1. A hook is not done before its first run, while it runs, or if it was stopped and has never run.
    2. A recover hook is done only when it has succeeded, because a host that stays drained after the event is
       the worst ordinary outcome. A skipped run counts as a success, and with `on_failure: ignore` a failed one
       or a timeout.
    3. Another hook that was interrupted or stopped is repeated up to MAX_ATTEMPTS runs, unless `rerun` is off.
    4. After any other run the hook is done.
    """
    if step is None or step.state == RUNNING:
        return False
    if step.state == STOPPED and step.attempt == 0:
        return False  # it was skipped and has never run
    if hook.stage == RECOVER:
        return step.state in (OK, SKIPPED) or (hook.settings.on_failure == "ignore" and step.state in (FAILED, TIMEOUT))
    if step.state in (INTERRUPTED, STOPPED):
        return not hook.settings.rerun or step.attempt >= MAX_ATTEMPTS
    return True


def next_hook(hooks: Hooks, record: EventRecord, stage: str, now: datetime) -> Hook | None:
    """Return the hook of the stage to run now; None if none is left, or the rest waits for its next attempt.

    It is the first one that is not done and need not wait. A hook that waits for its next attempt lets the
    later ones run. With `on_failure: stop` none runs after a hook whose latest run has not succeeded.
    """
    for hook in hooks_for(hooks, record, stage):
        step = record.latest_run(stage, hook.name)
        if not is_done(hook, step) and is_due(hook, step, now):
            return hook
        if step is not None and hook.settings.on_failure == "stop" and not _lets_later_run(step):
            return None
    return None


def is_due(hook: Hook, step: HookRun | None, now: datetime) -> bool:
    """Return True if the hook's next run need not wait; a recover hook waits longer after each failure."""
    at = retry_at(hook, step)
    return at is None or now >= at


def retry_at(hook: Hook, step: HookRun | None) -> datetime | None:
    """Return when a recover hook that did not succeed is run again; None if it need not wait.

    1. A hook of another stage does not wait, nor one that is done, has no result yet or was stopped.
    2. An interrupted run is repeated at once up to MAX_ATTEMPTS runs; with `rerun` off, NEVER.
    3. Otherwise the hook waits after the end of its run: FIRST_RECOVER_PAUSE, doubled with each attempt, at
       most LONGEST_RECOVER_PAUSE.
    """
    if hook.stage != RECOVER or step is None or step.ended_at is None or step.state == STOPPED or is_done(hook, step):
        return None
    if step.state == INTERRUPTED:
        if not hook.settings.rerun:
            return NEVER  # by configuration only an operator repeats it
        if step.attempt < MAX_ATTEMPTS:
            return None
    pause = min(FIRST_RECOVER_PAUSE * 2.0 ** min(max(0, step.attempt - 1), 20), LONGEST_RECOVER_PAUSE)
    return step.ended_at + timedelta(seconds=pause)


def is_finished(hooks: Hooks, record: EventRecord, stage: str) -> bool:
    """Return True if no hook of the stage is left to run, now or later.

    That is so if each hook is done, or each one up to a hook with `on_failure: stop` that is done without
    success.
    """
    for hook in hooks_for(hooks, record, stage):
        step = record.latest_run(stage, hook.name)
        if not is_done(hook, step):
            return False
        if step is not None and hook.settings.on_failure == "stop" and not _lets_later_run(step):
            return True
    return True


def _lets_later_run(step: HookRun) -> bool:
    """Return True if the later hooks of the stage may follow this run where `on_failure` is "stop"."""
    # the run for another event served a recover hook that was skipped
    return step.state == OK or (step.state == SKIPPED and step.stage == RECOVER)


def not_recovered(hooks: Hooks, record: EventRecord) -> list[HookRun]:
    """Return the latest runs of recover hooks that have not succeeded, for an event that is over."""
    if record.phase != RECOVER:
        return []
    steps = [(hook, record.latest_run(RECOVER, hook.name)) for hook in hooks_for(hooks, record, RECOVER)]
    ended = (FAILED, TIMEOUT, INTERRUPTED)
    return [step for hook, step in steps if step is not None and step.state in ended and not is_done(hook, step)]


def stage_state(hooks: Hooks, record: EventRecord, stage: str) -> str:
    """Return the state of a stage in the policy's terms: "none" (not begun), "running", "ok" or "failed".

    1. It is "none" if there are hooks, and none has run or was skipped.
    2. It is "running" while a hook runs, and until the stage is finished.
    3. It is "failed" if the latest run of a hook is not a success, or a hook has none, unless the hook has
       `on_failure: ignore`; and if a hook failed that was removed since.
    4. Otherwise it is "ok", also without any hooks.
    """
    planned = hooks_for(hooks, record, stage)
    steps = record.runs_in_stage(stage)
    if planned and not steps:
        return "none"
    if any(step.state == RUNNING for step in steps) or not is_finished(hooks, record, stage):
        return "running"
    for hook in planned:
        step = record.latest_run(stage, hook.name)
        if (step is None or step.state != OK) and hook.settings.on_failure != "ignore":
            return "failed"
    return "failed" if _removed_hook_failed(record, stage, {hook.name for hook in planned}) else "ok"


def _removed_hook_failed(record: EventRecord, stage: str, planned: Container[str]) -> bool:
    """Return True if a hook failed and was removed since; its removal does not undo its effects."""
    gone = {step.hook for step in record.runs_in_stage(stage)}.difference([WHOLE_DIRECTORY])
    latest = [record.latest_run(stage, name) for name in gone if name not in planned]
    return any(step is not None and step.state not in (OK, SKIPPED) for step in latest)


def has_prepared(hooks: Hooks, record: EventRecord, name: str | None = None) -> bool:
    """Return True if a prepare hook, or the one of this name, ran for the event."""
    ran = (step.hook for step in record.runs_in_stage(PREPARE) if step.state != SKIPPED)
    return any(name is None or is_same_preparation(hooks, each, name) for each in ran)


def will_prepare(hooks: Hooks, record: EventRecord, name: str | None = None) -> bool:
    """Return True if a prepare hook, or the one of this name, has yet to run for the event."""
    if record.phase != PREPARE or record.on_hold or record.event.status != "Scheduled":
        return False
    left = (hook for hook in hooks_for(hooks, record, PREPARE) if name in (None, hook.name))
    return any(not is_done(hook, record.latest_run(PREPARE, hook.name)) for hook in left)


def by_urgency(records: Iterable[EventRecord], now: datetime) -> list[EventRecord]:
    """Return the records, that of the most urgent event first."""
    return most_urgent_first(
        records, lambda record: Urgency(record.event.event_type, record.event.seconds_left(now), record.key)
    )


def is_late(record: EventRecord, now: datetime) -> bool:
    """Return True if NotBefore has passed although the event was never listed as Started."""
    return record.event.not_before is not None and not record.seen_started and now >= record.event.not_before


def prepare_deadline(record: EventRecord, margin: float) -> datetime | None:
    """Return when preparation has to be over, or None if that is unknown.

    That is `margin` seconds before NotBefore; less if the whole notice is short.
    """
    not_before = record.event.not_before
    if not_before is None or record.seen_started:
        return None
    return not_before - timedelta(seconds=margin_within(_notice(record, not_before), margin))


def prepare_budget(record: EventRecord, margin: float, began: datetime) -> float | None:
    """Return the seconds for a prepare hook that begins now; None if only its own timeout limits it."""
    not_before = record.event.not_before
    if not_before is None or record.seen_started:
        return None
    return preparation_seconds((not_before - began).total_seconds(), _notice(record, not_before), margin)


def _notice(record: EventRecord, not_before: datetime) -> float:
    return (not_before - record.first_seen).total_seconds()


def blocking_event(hook: Hook, record: EventRecord, hooks: Hooks, present: Sequence[EventRecord]) -> EventRecord | None:
    """Return the event whose preparation a recover hook would undo now, or None.

    A recover hook that is a pair with a prepare hook waits for the events that this one prepares for; other
    recover hooks wait for all. Every recover hook waits while its event is listed again: a reboot may have
    ended what had prepared the VM for that occurrence. One that runs for lost records waits for every event that
    the policy does not hold. `record` is the hook's event, which is over; `present` are the events for this VM that
    are not over.
    """
    prepared_by = partner(hooks, RECOVER, hook.name)
    for other in present:
        if (
            other.key == record.key
            or (record.is_of_lost_records and not other.on_hold)
            or has_prepared(hooks, other, prepared_by)
            or will_prepare(hooks, other, prepared_by)
        ):
            return other
    return None


def served_by_same_run(
    record: EventRecord, step: HookRun, hooks: Hooks, others: Sequence[EventRecord]
) -> Iterator[EventRecord]:
    """Yield the other events that one run of a recover hook serves: they were over when it began.

    They affect this VM, and the hook is still to be run for them.
    """
    for other in others:
        if (
            other is record
            or other.gone_at is None
            or not other.affects_this_vm
            or step.started_at is None
            or other.gone_at > step.started_at
        ):
            continue
        for hook in hooks_for(hooks, other, RECOVER):
            if hook.name == step.hook and not is_done(hook, other.latest_run(RECOVER, hook.name)):
                yield other
