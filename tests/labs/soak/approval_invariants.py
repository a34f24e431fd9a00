# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

from __future__ import annotations

from collections.abc import Iterator

from soak.evidence import Approval, Evidence
from soak.plan import PREPARE, RECOVER, Hook
from soak.violations import Violation

# seconds within which an approval may be in flight when the event changes
IN_FLIGHT_TIME = 1.0
CHANGES = ("move", "retype", "change-resources", "announce")


def approvals_follow_preparation(evidence: Evidence) -> Iterator[Violation]:
    """An approval follows the success of each prepare hook, which nothing has undone since."""
    for approval in evidence.approvals:
        for hook in evidence.plan.setup.hooks:
            problem = _missing_preparation(evidence, approval, hook) if hook.stage == PREPARE else ""
            if problem:
                yield Violation("1 approval after preparation", f"{_description(approval)} of {hook.path}: {problem}")


def _missing_preparation(evidence: Evidence, approval: Approval, hook: Hook) -> str:
    """Return why no success of the hook counts at the approval, or "".

    It counts from any event. A recover hook undoes it, and a reboot unless it persists.
    """
    runs = [run for run in evidence.runs_of(hook.path) if run.began <= approval.at]
    if not runs:
        return "it never ran"
    good = [run for run in runs if run.how == "ok" and run.ended is not None and run.ended <= approval.at]
    undone = [run.began for run in evidence.runs if run.hook.startswith(RECOVER) and run.began < approval.at]
    in_force = [run for run in good if hook.persists or not evidence.rebooted(run.began, approval.at)]
    if any(run.began > max(undone, default=0.0) for run in in_force):
        return ""
    return "a recover hook or a reboot has undone it" if good else "it has not succeeded"


def approvals_are_sent_once(evidence: Evidence) -> Iterator[Violation]:
    """IMDS gets one approval of an event, unless an answer was lost, a process ended or the event changed."""
    if evidence.post_faults:
        return
    taken = [approval for approval in evidence.approvals if approval.status == 200]
    for number, second in enumerate(taken):
        first = next((each for each in reversed(taken[:number]) if each.key == second.key), None)
        if first is not None and not _may_repeat(evidence, first, second):
            yield Violation(
                "1 approval once", f"{_description(second)} was approved {second.at - first.at:.1f} s before"
            )


def _may_repeat(evidence: Evidence, first: Approval, second: Approval) -> bool:
    changed = any(
        performed_action.action.verb in CHANGES
        and str(performed_action.action.arguments[0]).casefold() == second.key
        and first.at - IN_FLIGHT_TIME <= performed_action.began <= second.at
        for performed_action in evidence.performed
    )
    restarted = any(first.at - IN_FLIGHT_TIME <= restart.ended <= second.at for restart in evidence.restarts)
    recovered = any(run.hook.startswith(RECOVER) and first.at <= run.began <= second.at for run in evidence.runs)
    return changed or restarted or recovered


def _description(approval: Approval) -> str:
    return f"event {approval.key[:8]}, approved at {approval.at:.3f}"
