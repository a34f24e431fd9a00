# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Which hook of a stage is next for an event, how much time it has, and what came of the stage. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Container, Iterator, Mapping, Optional, Sequence

from hook_runner.hooks import WHOLE_FOLDER, Hook
from hook_runner.records import INTERRUPTED, OK, PREPARE, RECOVER, RUNNING, SKIPPED, STOPPED, Record, Step

Hooks = Mapping[str, Sequence[Hook]]

# how often a hook is run again that the host's end, or a change of the event, cut short
ATTEMPTS = 3
# of the time that an event gives altogether, the margin takes no more than this part
MARGIN_OF_ALL = 4


def applicable(hooks: Hooks, record: Record, stage: str) -> list[Hook]:
    """The hooks of a stage that are meant for this type of event, in the order in which they run."""
    return [hook for hook in hooks.get(stage, ()) if not hook.settings.types or record.event.event_type in hook.settings.types]


def is_done(hook: Hook, step: Optional[Step]) -> bool:
    """Whether a hook has had its run, of which this is the latest; a run that was cut short may be repeated."""
    if step is None or step.state == RUNNING:
        return False
    if step.state == STOPPED and step.attempt == 0:
        return False  # it had been left out, and has never run
    if step.state in (INTERRUPTED, STOPPED):
        return not hook.settings.rerun or step.attempt >= ATTEMPTS
    return True


def next_hook(hooks: Hooks, record: Record, stage: str) -> Optional[Hook]:
    """The first hook of the stage that is not done; None when there is nothing left to run."""
    for hook in applicable(hooks, record, stage):
        step = record.latest(stage, hook.name)
        if not is_done(hook, step):
            return hook
        if step is not None and step.state != OK and hook.settings.on_failure == "stop":
            return None
    return None


def outcome(hooks: Hooks, record: Record, stage: str) -> str:
    """How far a stage is: "none" (not begun), "running", "ok" or "failed", in the words of the policy."""
    planned = applicable(hooks, record, stage)
    steps = record.of_stage(stage)
    if planned and not steps:
        return "none"
    if any(step.state == RUNNING for step in steps) or next_hook(hooks, record, stage) is not None:
        return "running"
    for hook in planned:
        step = record.latest(stage, hook.name)
        if (step is None or step.state != OK) and hook.settings.on_failure != "ignore":
            return "failed"
    return "failed" if _failed_and_gone(record, stage, {hook.name for hook in planned}) else "ok"


def _failed_and_gone(record: Record, stage: str, planned: Container[str]) -> bool:
    """Whether a hook failed that is not there any more: taking it away does not undo what it left half done."""
    gone = {step.hook for step in record.of_stage(stage)}.difference([WHOLE_FOLDER])
    latest = [record.latest(stage, name) for name in gone if name not in planned]
    return any(step is not None and step.state not in (OK, SKIPPED) for step in latest)


def has_prepared(record: Record, name: Optional[str] = None) -> bool:
    """Whether prepare hooks ran for the event, or the one of that name did."""
    return any(step.state != SKIPPED and name in (None, step.hook) for step in record.of_stage(PREPARE))


def prepare_ends(record: Record, margin: float) -> Optional[datetime]:
    """When preparation has to be over: a margin before NotBefore, smaller where all the notice is short. None: nobody knows."""
    not_before = record.event.not_before
    if not_before is None or record.seen_started:
        return None
    notice = max(0.0, (not_before - record.first_seen).total_seconds())
    return not_before - timedelta(seconds=min(margin, notice / MARGIN_OF_ALL))


def held_back_by(hook: Hook, record: Record, hooks: Hooks, others: Sequence[Record]) -> Optional[Record]:
    """The event for which this VM has to stay prepared, so that a recover hook must wait; None where it may run.

    A hook with a namesake among the prepare hooks waits for the events that ran that one, others wait for all.
    """
    partner = hook.name if any(other.name == hook.name for other in hooks.get(PREPARE, ())) else None
    for other in others:
        if other is not record and other.gone_at is None and other.concerned and has_prepared(other, partner):
            return other
    return None


def companions(record: Record, step: Step, hooks: Hooks, others: Sequence[Record]) -> Iterator[Record]:
    """The other events that were over when a recover hook began, and want the same one: one run serves them all."""
    for other in others:
        if other is record or other.gone_at is None or not other.concerned or step.started_at is None:
            continue
        wanted = [hook.name for hook in applicable(hooks, other, RECOVER)]
        if step.hook in wanted and other.gone_at <= step.started_at and other.latest(RECOVER, step.hook) is None:
            yield other
