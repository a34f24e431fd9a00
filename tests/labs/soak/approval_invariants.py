# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

from __future__ import annotations

from collections.abc import Iterator

from soak.evidence import Approval, Evidence
from soak.hooks import HookRun
from soak.plan import PREPARE, RECOVER, VM, Hook
from soak.violations import Violation

# seconds within which an approval may be in flight when the event changes
IN_FLIGHT_TIME = 1.0
CHANGES = ("move", "retype", "change-resources", "announce")
# seconds until a daemon on a busy machine notices the end of a hook
NOTICE_TIME = 1.0


def approvals_follow_preparation(evidence: Evidence) -> Iterator[Violation]:
    """An approval follows the success of each prepare hook, which nothing has undone since."""
    for approval in evidence.approvals:
        for hook in evidence.plan.setup.hooks:
            problem = _missing_preparation(evidence, approval, hook) if hook.stage == PREPARE else ""
            if problem:
                yield Violation("1 approval after preparation", f"{_description(approval)} of {hook.path}: {problem}")


def approvals_release_no_others(evidence: Evidence) -> Iterator[Violation]:
    """An approved event affects this VM, and affects other VMs only if this one leads."""
    for approval in evidence.approvals:
        at_the_time = evidence.resources_at(approval.key, approval.at)
        before = {
            each.resources
            for each in evidence.listed.get(approval.key, ())
            if approval.at - IN_FLIGHT_TIME <= each.at <= approval.at
        }
        affected = {at_the_time, evidence.resources_at(approval.key, approval.at - IN_FLIGHT_TIME), *before} - {()}
        if affected and not any(_may_release(resources, evidence.plan.setup.leader) for resources in affected):
            yield Violation("1 approval of others", f"{_description(approval)} affects {' '.join(at_the_time)}")


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


def _missing_preparation(evidence: Evidence, approval: Approval, hook: Hook) -> str:
    """Return why the hook's preparation is not valid at the approval, or ""."""
    own = [run for run in evidence.runs_of(hook.path, approval.key) if run.began <= approval.at]
    last = own[-1] if own else None
    if last is None or last.how == "":
        last = _shared_run(evidence, approval, hook, last) or last
    if last is None:
        return "it never ran"
    if last.how != "ok" or last.ended is None or last.ended > approval.at:
        return f"its last run {'failed' if last.how == 'failed' else 'had not ended, or was killed'}"
    for run in evidence.runs:
        if last.began < run.began < approval.at and undoes(evidence, run.hook, hook):
            return f"{run.hook} for {run.key} had undone it"
    if not hook.persists and evidence.rebooted(last.began, approval.at):
        return "the host has rebooted since"
    return ""


def _shared_run(evidence: Evidence, approval: Approval, hook: Hook, own: HookRun | None) -> HookRun | None:
    """Return a successful run for a less urgent event, which also counts for one that waited for this hook.

    The daemon notices the end of a hook a moment later, and may receive the event in between.
    """
    seen = next((poll.at for poll in evidence.polls if approval.key in poll.keys), approval.at) - NOTICE_TIME
    since = seen if own is None else max(seen, own.began)
    others = [run for run in evidence.runs_of(hook.path) if run.key != approval.key and run.how == "ok"]
    return next((run for run in reversed(others) if run.ended is not None and since <= run.ended <= approval.at), None)


def undoes(evidence: Evidence, path: str, prepare: Hook) -> bool:
    """Return True if a recover hook undoes a prepare hook: its namesake, or a hook without a namesake."""
    stage, name = path.split("/")
    namesakes = {hook.name for hook in evidence.plan.setup.hooks if hook.stage == PREPARE}
    return stage == RECOVER and (name == prepare.name or name not in namesakes)


def _may_release(resources: tuple[str, ...], leader: str) -> bool:
    return resources == (VM,) or (leader == "first" and VM in resources)


def _may_repeat(evidence: Evidence, first: Approval, second: Approval) -> bool:
    changed = any(
        performed_action.action.verb in CHANGES
        and str(performed_action.action.arguments[0]).casefold() == second.key
        and first.at - IN_FLIGHT_TIME <= performed_action.began <= second.at
        for performed_action in evidence.performed
    )
    restarted = any(first.at - IN_FLIGHT_TIME <= restart.ended <= second.at for restart in evidence.restarts)
    recovered = any(
        run.hook.startswith(RECOVER) and run.key == second.key and first.at <= run.began <= second.at
        for run in evidence.runs
    )
    return changed or restarted or recovered


def _description(approval: Approval) -> str:
    return f"event {approval.key[:8]}, approved at {approval.at:.3f}"
