# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Which hook of a stage is next for an event, how much time it has, and what came of the stage. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Container, Iterator, Mapping, Sequence

from azure_scheduled_events.document import EVENT_TYPES
from azure_scheduled_events.named_tuple import NamedTuple
from hook_runner.hooks.discovery import WHOLE_DIRECTORY, Hook
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

# how often a hook is run again that the host's end, or a change of the event, cut short
MAX_ATTEMPTS = 3
# of the time that an event gives altogether, the margin takes no more than this part
MARGIN_DIVISOR = 4
# seconds before a recover hook that failed is run again: doubled each time, up to the second figure
FIRST_RECOVER_PAUSE, LONGEST_RECOVER_PAUSE = 10.0, 600.0
# the order in which an event can become worse
SEVERITY = {name: rank for rank, name in enumerate(EVENT_TYPES)}


# a time that does not come
NEVER = datetime.max.replace(tzinfo=timezone.utc)


class Times(NamedTuple):
    """The settings by which preparation is timed, in seconds.

    Attributes:
        margin: preparation ends so long before NotBefore.
        minimum: a prepare hook may take so long when NotBefore has passed and the event is still
            Scheduled.
    """

    margin: float
    minimum: float


def hooks_for(hooks: Hooks, record: EventRecord, stage: str) -> list[Hook]:
    """The hooks of a stage that are meant for this type of event, in the order in which they run."""
    return [
        hook
        for hook in hooks.get(stage, ())
        if not hook.settings.types or record.event.event_type in hook.settings.types
    ]


def is_done(hook: Hook, step: HookRun | None) -> bool:
    """Return True if a hook has had its run, of which `step` is the latest.

    A run that was cut short may be repeated. A recover hook is done only when it has succeeded: a
    host that stays drained after the event is the worst of the ordinary outcomes.
    """
    if step is None or step.state == RUNNING:
        return False
    if step.state == STOPPED and step.attempt == 0:
        return False  # it had been left out, and has never run
    if hook.stage == RECOVER:
        return step.state in (OK, SKIPPED) or (hook.settings.on_failure == "ignore" and step.state in (FAILED, TIMEOUT))
    if step.state in (INTERRUPTED, STOPPED):
        return not hook.settings.rerun or step.attempt >= MAX_ATTEMPTS
    return True


def next_hook(hooks: Hooks, record: EventRecord, stage: str, now: datetime) -> Hook | None:
    """The first hook of the stage that is to be run now; None when nothing is left, or what is left has to wait for its next attempt."""
    for hook in hooks_for(hooks, record, stage):
        step = record.latest_run(stage, hook.name)
        if not is_done(hook, step) and is_due(hook, step, now):
            return hook
        if step is not None and hook.settings.on_failure == "stop" and not _lets_later_run(step):
            return None
    return None


def is_due(hook: Hook, step: HookRun | None, now: datetime) -> bool:
    """Return True if the hook's next run need not wait; one that has failed to recover waits longer each time."""
    at = retry_at(hook, step)
    return at is None or now >= at


def retry_at(hook: Hook, step: HookRun | None) -> datetime | None:
    """When a recover hook that did not succeed is run again; None where it need not wait."""
    if hook.stage != RECOVER or step is None or step.ended_at is None or step.state == STOPPED or is_done(hook, step):
        return None
    if step.state == INTERRUPTED:
        if not hook.settings.rerun:
            return NEVER  # the configuration says that only an operator repeats it
        if step.attempt < MAX_ATTEMPTS:
            return None
    pause = min(FIRST_RECOVER_PAUSE * 2.0 ** min(max(0, step.attempt - 1), 20), LONGEST_RECOVER_PAUSE)
    return step.ended_at + timedelta(seconds=pause)


def is_finished(hooks: Hooks, record: EventRecord, stage: str) -> bool:
    """Return True if no hook of the stage is left to run, now or later."""
    for hook in hooks_for(hooks, record, stage):
        step = record.latest_run(stage, hook.name)
        if not is_done(hook, step):
            return False
        if step is not None and hook.settings.on_failure == "stop" and not _lets_later_run(step):
            return True
    return True


def _lets_later_run(step: HookRun) -> bool:
    """Return True if a run lets the later hooks of its stage run also where `on_failure` is "stop"."""
    # a recover hook that was left out has been served by the run for another event
    return step.state == OK or (step.state == SKIPPED and step.stage == RECOVER)


def not_recovered(hooks: Hooks, record: EventRecord) -> list[HookRun]:
    """The latest runs of the recover hooks that have not succeeded yet, for an event that is over."""
    if record.phase != RECOVER:
        return []
    steps = [(hook, record.latest_run(RECOVER, hook.name)) for hook in hooks_for(hooks, record, RECOVER)]
    ended = (FAILED, TIMEOUT, INTERRUPTED)
    return [step for hook, step in steps if step is not None and step.state in ended and not is_done(hook, step)]


def stage_state(hooks: Hooks, record: EventRecord, stage: str) -> str:
    """How far a stage is: "none" (not begun), "running", "ok" or "failed", in the words of the policy."""
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
    """Return True if a hook failed that does not exist any more: its removal does not undo what it left half done."""
    gone = {step.hook for step in record.runs_in_stage(stage)}.difference([WHOLE_DIRECTORY])
    latest = [record.latest_run(stage, name) for name in gone if name not in planned]
    return any(step is not None and step.state not in (OK, SKIPPED) for step in latest)


def has_prepared(record: EventRecord, name: str | None = None) -> bool:
    """Return True if prepare hooks ran for the event, or the one of that name did."""
    return any(step.state != SKIPPED and name in (None, step.hook) for step in record.runs_in_stage(PREPARE))


def will_prepare(hooks: Hooks, record: EventRecord, name: str | None = None) -> bool:
    """Return True if prepare hooks are still to be run for the event, or the one of that name is."""
    if record.phase != PREPARE or record.on_hold or record.event.status != "Scheduled":
        return False
    left = (hook for hook in hooks_for(hooks, record, PREPARE) if name in (None, hook.name))
    return any(not is_done(hook, record.latest_run(PREPARE, hook.name)) for hook in left)


def is_undone(record: EventRecord) -> bool:
    """Return True if recover hooks ran after the last prepare hook of an event that has come back."""
    if record.gone_at is not None:
        return False
    prepared = max((step.id for step in record.runs_in_stage(PREPARE) if step.state != SKIPPED), default=0)
    # a recover hook that was left out was served by the run for another event
    return max((step.id for step in record.runs_in_stage(RECOVER)), default=0) > prepared


def urgency(record: EventRecord) -> tuple[float, int]:
    """A key that sorts events by NotBefore, the nearest first, and then by severity, the worst first. An unknown time counts as "now"."""
    not_before = record.event.not_before
    return (0.0 if not_before is None else not_before.timestamp(), -SEVERITY.get(record.event.event_type, -1))


def is_late(record: EventRecord, now: datetime) -> bool:
    """Return True if NotBefore has passed although the event has not been seen Started."""
    return record.event.not_before is not None and not record.seen_started and now >= record.event.not_before


def prepare_deadline(record: EventRecord, margin: float) -> datetime | None:
    """When preparation has to be over: a margin before NotBefore, smaller where all the notice is short. None where it is unknown."""
    not_before = record.event.not_before
    if not_before is None or record.seen_started:
        return None
    notice = max(0.0, (not_before - record.first_seen).total_seconds())
    return not_before - timedelta(seconds=min(margin, notice / MARGIN_DIVISOR))


def prepare_budget(record: EventRecord, times: Times, began: datetime) -> float | None:
    """Seconds that a prepare hook has that begins at this moment; None where only its own time-out limits it."""
    end = prepare_deadline(record, times.margin)
    if end is None:
        return None
    return times.minimum if is_late(record, began) else (end - began).total_seconds()


def blocking_event(hook: Hook, record: EventRecord, hooks: Hooks, others: Sequence[EventRecord]) -> EventRecord | None:
    """The event for which this VM is, or is going to be, prepared, so that a recover hook must wait; None where it may run.

    A hook with a namesake among the prepare hooks waits for the events that this one prepares for,
    others wait for all.
    """
    partner = hook.name if any(other.name == hook.name for other in hooks.get(PREPARE, ())) else None
    for other in others:
        if other is record or other.gone_at is not None or not other.affects_this_vm:
            continue
        if has_prepared(other, partner) or will_prepare(hooks, other, partner):
            return other
    return None


def served_by_same_run(
    record: EventRecord, step: HookRun, hooks: Hooks, others: Sequence[EventRecord]
) -> Iterator[EventRecord]:
    """The other events that were over when a recover hook began, and want the same one: one run serves them all."""
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


def undone_by(step: HookRun, hooks: Hooks, others: Sequence[EventRecord]) -> Iterator[EventRecord]:
    """The present events whose preparation a recover hook undoes: they were over when it began, and have come back since."""
    partner = step.hook if any(hook.name == step.hook for hook in hooks.get(PREPARE, ())) else None
    for other in others:
        before = (done for done in other.runs_in_stage(PREPARE) if done.id < step.id and done.state != SKIPPED)
        if other.gone_at is None and other.affects_this_vm and any(partner in (None, done.hook) for done in before):
            yield other
