# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The rules for a chaos run, which check its evidence."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from chaos.evidence import Evidence, Run
from chaos.plan import PREPARE, SETTLE, WARM

# seconds within which a controller need not react to a change in Azure
REACTION_TIME = 3.0
# seconds of notice that an undisturbed run needs to prepare and approve, on a busy machine too
SUFFICIENT_NOTICE = 60.0
# exit statuses of ansible-playbook: success, a host failed, a host was unreachable
EXPECTED_STATUSES = (0, 2, 4)
INTERNAL_ERRORS = re.compile(
    r"Unexpected Exception|is undefined|has no attribute|[Tt]emplate error|Error while resolving"
)
# Ansible shows the traceback of a module that a lost connection has interrupted
TRACEBACK = "Traceback"


class Violation(NamedTuple):
    """The name of the rule, and the observation."""

    rule: str
    text: str

    def __str__(self) -> str:
        return "{}: {}".format(*self)


def find_violations(evidence: Evidence) -> list[Violation]:
    return [violation for rule in RULES for violation in rule(evidence)]


def no_host_stays_drained(evidence: Evidence) -> Iterator[Violation]:
    """After an undisturbed run no VM is drained without an event."""
    for run in undisturbed(evidence):
        for vm in sorted(run.drained - run.down):
            if not evidence.events_of(vm, run.ended):
                yield Violation("drained without an event", f"{vm} after {run.name}")


def no_recovery_is_lost(evidence: Evidence) -> Iterator[Violation]:
    """After the last run every VM that a step began to prepare has been recovered."""
    for vm in sorted(evidence.runs[-1].drained if evidence.runs else ()):
        yield Violation("lost recovery", f"{vm} is drained after the last run")


def approvals_follow_preparations(evidence: Evidence) -> Iterator[Violation]:
    """At an approval all VMs of the event are prepared."""
    events = {event.event_id: event for event in evidence.events}
    for approval in evidence.approvals:
        event = events[approval.event_id]
        # a VM that the event affects only since a moment may not have been in the document of the approver
        known = set(event.resources_at(approval.at)) & set(
            event.resources_at(approval.at - REACTION_TIME) or event.resources_at(approval.at)
        )
        for vm in sorted(known):
            state = evidence.preparation(vm, approval.at)
            if state != "prepared":
                rule = "approval after a failed preparation" if "failed" in state else "approval without preparation"
                yield Violation(rule, f"{approval.vm} approved {approval.event_id[:8]} when {vm} was {state}")


def recoveries_wait_for_the_end(evidence: Evidence) -> Iterator[Violation]:
    """No VM is recovered while its event is approved or Started."""
    for mark in evidence.marks:
        if (mark.step, mark.what) != (WARM, "begin"):
            continue
        for event in evidence.events_of(mark.vm, mark.at):
            since = [each.at for each in evidence.approvals if each.event_id == event.event_id and each.at <= mark.at]
            since += [event.started] if event.started is not None and event.started <= mark.at else []
            if (
                since
                and min(since) < mark.at - REACTION_TIME
                and mark.vm in event.resources_at(mark.at - REACTION_TIME)
            ):
                yield Violation("recovery during the event", f"{mark.vm} of {event.event_id[:8]}")


def undisturbed_runs_handle_events(evidence: Evidence) -> Iterator[Violation]:
    """An undisturbed run with sufficient notice prepares the VMs of an event before the event starts."""
    for run in undisturbed(evidence):
        for event in evidence.events:
            resources = event.resources_at(run.began)
            is_late = event.started is not None and event.started <= run.began
            if (
                not resources
                or is_late
                or event.not_before < run.began + SUFFICIENT_NOTICE
                or run.down & set(resources)
            ):
                continue
            end = min(filter(None, (event.started, event.over, run.ended)))
            for vm in resources:
                if evidence.preparation(vm, end) != "prepared":
                    text = f"{vm} was {evidence.preparation(vm, end)} when {event.event_id[:8]} started or was over"
                    yield Violation("event ignored", f"{run.name}: {text}")


def runs_end(evidence: Evidence) -> Iterator[Violation]:
    """No run hangs."""
    for run in evidence.runs:
        if run.hung:
            yield Violation("hang", f"{run.name} did not end within {run.ended - run.began:.0f} s")


def exit_statuses_are_right(evidence: Evidence) -> Iterator[Violation]:
    """The exit status of a run that ends by itself shows whether it succeeded."""
    for run in (run for run in evidence.runs if not run.killed):
        left = sorted(vm for vm in run.drained if vm in run.down or not evidence.events_of(vm, run.ended))
        if run.status not in EXPECTED_STATUSES:
            yield Violation("exit status", f"{run.name} ended with {run.status}")
        elif run.status == 0 and left:
            yield Violation("exit status", f"{run.name} ended with 0 although {', '.join(left)} stayed drained")
        elif run.status == 0 and (failed := failed_preparations(evidence, run)):
            yield Violation(
                "exit status", f"{run.name} ended with 0 although a preparation failed on {', '.join(failed)}"
            )
        elif not run.is_disturbed and (run.status != 0) != bool(run.down) and not started_unprepared(evidence, run):
            yield Violation("exit status", f"{run.name} ended with {run.status}")


def messages_are_sane(evidence: Evidence) -> Iterator[Violation]:
    """No run prints internal errors."""
    for run in evidence.runs:
        for line in run.output.splitlines():
            if (INTERNAL_ERRORS.search(line) and not run.killed) or (
                TRACEBACK in line and not run.is_disturbed and not started_unprepared(evidence, run)
            ):
                yield Violation("message", f"{run.name}: {line.strip()[:300]}")
                break


def runs_keep_apart(evidence: Evidence) -> Iterator[Violation]:
    """No run takes a step on a VM on which another run, which is alive, has taken one without a recovery since."""
    for other in evidence.runs:
        for mark in evidence.marks:
            # a run that has failed may have released the VM
            is_alive = other.began <= mark.at <= other.ended and (other.killed or other.status == 0)
            if mark.run != other.name and is_alive and evidence.held_by(other, mark.vm, mark.at):
                text = f"{mark.vm}: {mark.step} of {mark.run} while {other.name} held the VM"
                yield Violation("two runs at once", text)


def undisturbed(evidence: Evidence) -> list[Run]:
    return [run for run in evidence.runs if not run.is_disturbed]


def failed_preparations(evidence: Evidence, run: Run) -> list[str]:
    """Return the VMs on which a preparation failed in a run, and did not succeed later in it."""
    marks = [mark for mark in evidence.marks if mark.run == run.name and mark.step in PREPARE]
    failed = {mark.vm: mark.at for mark in marks if mark.what == "failed"}
    return sorted(
        vm
        for vm, at in failed.items()
        if not any((mark.vm, mark.step, mark.what) == (vm, SETTLE, "ok") and mark.at > at for mark in marks)
    )


def started_unprepared(evidence: Evidence, run: Run) -> bool:
    """Return True if an event started on an unprepared VM during the run, which may fail the run there."""
    starts = [
        (event, event.started)
        for event in evidence.events
        if event.started is not None and run.began <= event.started <= run.ended
    ]
    return any(evidence.preparation(vm, at) != "prepared" for event, at in starts for vm in event.resources_at(at))


RULES = (
    no_host_stays_drained,
    no_recovery_is_lost,
    approvals_follow_preparations,
    recoveries_wait_for_the_end,
    undisturbed_runs_handle_events,
    runs_end,
    exit_statuses_are_right,
    messages_are_sane,
    runs_keep_apart,
)
