# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Approves scheduled events through Azure Resource Manager, from the controller."""

from __future__ import annotations

import typing as t

from ansible.errors import AnsibleError
from ansible.plugins.action import ActionBase

from ..plugin_utils._maintenance.arm_acknowledge import (
    APPROVED,
    FAILED,
    Answer,
    Outcome,
    Request,
    answers_of,
    changed_since,
    endpoint_problem,
    is_unknown_operation,
    list_requests,
    outcome_of,
    single_requests,
    token_problem,
    vm_of,
)

_OPTIONS: dict[str, t.Any] = dict(
    endpoint=dict(type="str", required=True),
    token=dict(type="str", required=True, no_log=True),
    resource_id=dict(type="str", required=True),
    decisions=dict(type="list", elements="dict", required=True),
    read_again=dict(type="dict", default={}),
    timeout=dict(type="int", default=30),
)

Result = t.Dict[str, t.Any]
# base URL, resource id and event ids -> the requests that approve these events
Compose = t.Callable[[str, str, t.Sequence[str]], t.List[Request]]


class ActionModule(ActionBase):
    """The action plugin maintenance_acknowledge."""

    _supports_check_mode = True

    def run(self, tmp: None = None, task_vars: dict[str, t.Any] | None = None) -> Result:
        """Return one result for each decision, in the form in which a loop over event_approve has them."""
        result: Result = super().run(tmp, task_vars)
        options = self.validate_argument_spec(argument_spec=_OPTIONS)[1]
        outcomes = self._approve(options["decisions"], options, task_vars)
        results = [_result(item, outcome) for item, outcome in zip(options["decisions"], outcomes)]
        failures = [each["msg"] for each in results if each["failed"]]
        result.update(
            changed=any(each["approvals"][0]["outcome"] == APPROVED for each in results),
            results=results,
            summary=[
                "{event_type} {event_id}: {reason}".format(reason=each["approvals"][0]["reason"], **each["item"])
                for each in results
            ],
        )
        if failures:
            result.update(failed=True, msg="; ".join(failures))
        return result

    def _approve(self, decisions: list[Result], options: Result, task_vars: dict[str, t.Any] | None) -> list[Outcome]:
        options = dict(options, token=options["token"].strip())
        for name, obstacle in (
            ("maintenance_arm_endpoint", endpoint_problem(options["endpoint"])),
            ("maintenance_arm_token", token_problem(options["token"])),
        ):
            if obstacle:
                return [Outcome(FAILED, f"{name}: {obstacle}")] * len(decisions)
        vm = vm_of(options["resource_id"])  # maintenance_check has checked it
        changes = [changed_since(decision, options["read_again"], vm) for decision in decisions]
        if self._task.check_mode:
            return [changed or Outcome(APPROVED, "it would be approved") for changed in changes]
        event_ids = [decision["event_id"] for decision, changed in zip(decisions, changes) if not changed]
        answers = self._answers(list_requests, event_ids, options, task_vars)
        unknown = [event_id for event_id, answer in answers.items() if is_unknown_operation(answer)]
        answers.update(self._answers(single_requests, unknown, options, task_vars))
        return [changed or outcome_of(answers[decision["event_id"]]) for decision, changed in zip(decisions, changes)]

    def _answers(
        self, compose: Compose, event_ids: list[str], options: Result, task_vars: dict[str, t.Any] | None
    ) -> dict[str, Answer]:
        """Return event id -> the answer; each request is sent once, because the events have to be read before another.

        The role reads them, and decides again.
        """
        answers: dict[str, Answer] = {}
        for request in compose(options["endpoint"], options["resource_id"], event_ids) if event_ids else ():
            answer = self._request(request, options, task_vars)
            status, content, problem = answer.get("status", -1), answer.get("content", ""), answer.get("msg", "")
            answers.update(answers_of(request.event_ids, int(status), str(content), str(problem)))
        return answers

    def _request(self, request: Request, options: Result, task_vars: dict[str, t.Any] | None) -> Result:
        arguments = {
            "url": request.url,
            "method": "POST",
            "headers": {"Authorization": f"Bearer {options['token']}", "Accept": "application/json"},
            "return_content": True,
            # the token is for this server only
            "follow_redirects": "none",
            # a proxy would read the token of a request without encryption
            "use_proxy": request.url.lower().startswith("https:"),
            "timeout": options["timeout"],
            **({"body": request.body, "body_format": "json"} if request.body else {}),
        }
        try:
            answer: Result = self._execute_module(
                module_name="ansible.builtin.uri", module_args=arguments, task_vars=task_vars
            )
        except AnsibleError as error:
            # the controller itself cannot run the module
            return {"msg": str(error.message)}
        return answer


def _result(decision: Result, outcome: Outcome) -> Result:
    approval = {"event_id": decision["event_id"], "outcome": outcome.outcome, "reason": outcome.reason}
    return {
        "item": decision,
        "approvals": [approval],
        "failed": outcome.outcome == FAILED,
        "msg": outcome.reason if outcome.outcome == FAILED else "",
    }
