# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Checks of a run by evidence that does not come from the daemon: marks of hooks, and the simulator's log.

`maintenance_world` checks each document, hook and approval; these are the effects of the whole process.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from seed_campaign import Approval, Violation
from soak.plan import PREPARE, RECOVER, Hook, Plan
from support.daemon.hook_scripts import Mark


class HookRun(NamedTuple):
    """One run of a hook, with Unix times; one that failed, was killed or still runs has not succeeded."""

    hook: str
    event_id: str
    began: float
    succeeded: float | None


class Evidence(NamedTuple):
    """The observations of a run; ``reboots``: Unix times."""

    plan: Plan
    runs: Sequence[HookRun]
    approvals: Sequence[Approval]
    reboots: Sequence[float]


def hook_runs(marks: Sequence[Mark]) -> list[HookRun]:
    """Return the runs of these marks, in the order of their beginning."""
    ends = {(mark.pid, mark.hook, mark.event_id): mark.at for mark in marks if mark.what == "end"}
    begins = [mark for mark in marks if mark.what == "begin"]
    return [
        HookRun(mark.hook, mark.event_id, mark.at, ends.get((mark.pid, mark.hook, mark.event_id))) for mark in begins
    ]


def find_violations(evidence: Evidence) -> list[Violation]:
    return [*approvals_follow_preparation(evidence), *recoveries_succeed(evidence)]


def approvals_follow_preparation(evidence: Evidence) -> Iterator[Violation]:
    """An approval follows the success of each prepare hook, which nothing has undone since."""
    for approval in evidence.approvals:
        for hook in evidence.plan.setup.hooks:
            if hook.stage == PREPARE and not _counts(evidence, approval.at, hook):
                text = f"event {approval.event_id[:8]}, approved at {approval.at:.3f}: no success of {hook.path}"
                yield Violation("1 approval after preparation", text)


def _counts(evidence: Evidence, at: float, hook: Hook) -> bool:
    """Return True if a success of the hook counts at a time.

    It counts from any event. A recover hook undoes it, and a reboot unless it persists.
    """
    undone = [run.began for run in evidence.runs if run.hook.startswith(RECOVER)]
    undone += [] if hook.persists else evidence.reboots
    last = max((moment for moment in undone if moment < at), default=0.0)
    return any(
        run.hook == hook.path and run.began > last and run.succeeded is not None and run.succeeded <= at
        for run in evidence.runs
    )


def recoveries_succeed(evidence: Evidence) -> Iterator[Violation]:
    """After the last run of each other hook each recover hook succeeds."""
    others = [run for run in evidence.runs if not run.hook.startswith(RECOVER)]
    for hook in evidence.plan.setup.hooks if others else ():
        last = others[-1]
        runs = [run for run in evidence.runs if run.hook == hook.path and run.began >= last.began]
        if hook.stage == RECOVER and not any(run.succeeded for run in runs):
            yield Violation("3 recovered", f"{hook.path} never succeeded after {last.hook} for {last.event_id[:8]}")


def counts_of(evidence: Evidence) -> dict[str, int]:
    """Return the number of observations of one run, by name."""
    counts = Counter({"approvals": len(evidence.approvals), "hook runs": len(evidence.runs)})
    counts.update(f"did: {action.verb}" for action in evidence.plan.actions)
    return dict(counts)
