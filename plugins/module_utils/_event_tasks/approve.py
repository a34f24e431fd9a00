# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""The work of module event_approve."""

from __future__ import annotations

from ..azure_scheduled_events.approval import ApprovalResult, approve
from ..azure_scheduled_events.approval_plan import APPROVE, APPROVED, ApprovalCriteria, ApprovalOutcome
from ..azure_scheduled_events.policy import Policy
from ..azure_scheduled_events.printable import printable
from ..azure_scheduled_events.receipts import default_folder
from ..azure_scheduled_events.release import ALREADY_APPROVED, OTHERS_AFFECTED
from ..azure_scheduled_events.yaml_lines import read_text
from .event_task import EventCall, EventTask, InvalidOptions, Result


def parse_criteria(call: EventCall) -> ApprovalCriteria:
    """Return the criteria that the options describe, without this VM's name; raise InvalidOptions."""
    params = call.params
    selection = call.selection()
    try:
        policy, path = params["policy"], params["policy_file"]
        if path is not None:
            policy = Policy.from_yaml(read_text(path, "policy file"), path)
        return ApprovalCriteria.parse(selection, policy, params["prepared"], params["gates"], params["release_others"])
    except ValueError as error:
        raise InvalidOptions(str(error)) from error


def approval_diff(done: ApprovalResult) -> Result:
    """Return the diff: the state before and after of the events that are approved now or were before."""
    shown = {item.event_id for item in done.plan if item.outcome in (APPROVE, ALREADY_APPROVED.code)}

    def state(listed: list[ApprovalOutcome], good: tuple[str, ...]) -> dict[str, str]:
        return {
            item.event_id: "approved" if item.outcome in good else "not approved"
            for item in listed
            if item.event_id in shown
        }

    return {
        "before": {"events": state(done.plan, (ALREADY_APPROVED.code,))},
        "after": {"events": state(done.items, (APPROVE, APPROVED, ALREADY_APPROVED.code))},
    }


def approve_events(call: EventCall) -> Result:
    """Return the outcome of each selected event; raise ImdsError if the events cannot be read."""
    criteria = parse_criteria(call)
    folder = call.params["receipts"] or default_folder()
    done = approve(call.open_session(), criteria, folder, send=not call.check_mode)
    call.warn_about(done.document)
    for text in done.warnings:
        call.warn(text)
    for item in done.items:
        if item.outcome == OTHERS_AFFECTED:
            call.warn(f"{printable(item.event_id)} was not approved: {item.reason}")
    result = dict(done.as_dict(), diff=approval_diff(done))
    problem = done.failure(criteria.selection.event_ids or ())
    return dict(result, failed=True, msg=problem) if problem else result


EVENT_APPROVE = EventTask(
    approve_events,
    timeout=130,
    options=dict(
        policy=dict(type="raw"),
        policy_file=dict(type="path"),
        prepared=dict(type="str", choices=["none", "running", "ok", "failed"], default="none"),
        gates=dict(type="dict", default={}),
        release_others=dict(type="bool", default=False),
        receipts=dict(type="path"),
    ),
    rules=dict(
        required_one_of=[["policy", "policy_file", "event_ids", "types", "statuses", "sources"]],
        mutually_exclusive=[["policy", "policy_file"]],
    ),
)
