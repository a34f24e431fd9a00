# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Approves scheduled events through Azure Resource Manager, from the controller."""

from __future__ import annotations

import time
import typing as t

from ansible.errors import AnsibleError
from ansible.plugins.action import ActionBase
from ansible_collections.azure_imds.scheduled_events.plugins.plugin_utils._maintenance.arm_acknowledge import (
    APPROVED,
    FAILED,
    Outcome,
    acknowledge_url,
    changed_since,
    endpoint_problem,
    is_retried,
    outcome_of,
    token_problem,
)

_OPTIONS: dict[str, t.Any] = dict(
    endpoint=dict(type="str", required=True),
    token=dict(type="str", required=True, no_log=True),
    resource_id=dict(type="str", required=True),
    decisions=dict(type="list", elements="dict", required=True),
    read_again=dict(type="dict", default={}),
    timeout=dict(type="int", default=30),
)
# seconds between the attempts, which are one more
_PAUSES = (1.0, 2.0, 4.0)

Result = t.Dict[str, t.Any]


class ActionModule(ActionBase):
    """The action plugin maintenance_acknowledge."""

    _supports_check_mode = True

    def run(self, tmp: None = None, task_vars: dict[str, t.Any] | None = None) -> Result:
        """Return one result for each decision, in the form in which a loop over event_approve has them."""
        result: Result = super().run(tmp, task_vars)
        options = self.validate_argument_spec(argument_spec=_OPTIONS)[1]
        results = [_result(item, self._approve(item, options, task_vars)) for item in options["decisions"]]
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

    def _approve(self, decision: Result, options: Result, task_vars: dict[str, t.Any] | None) -> Outcome:
        options = dict(options, token=options["token"].strip())
        for name, obstacle in (
            ("maintenance_arm_endpoint", endpoint_problem(options["endpoint"])),
            ("maintenance_arm_token", token_problem(options["token"])),
        ):
            if obstacle:
                return Outcome(FAILED, f"{name}: {obstacle}")
        try:
            url = acknowledge_url(options["endpoint"], options["resource_id"], decision["event_id"])
        except ValueError as error:
            return Outcome(FAILED, f"maintenance_arm_resource_id: {error}")
        changed = changed_since(decision, options["read_again"])
        if changed:
            return changed
        if self._task.check_mode:
            return Outcome(APPROVED, "it would be approved")
        answer = self._request(url, options, task_vars)
        for pause in _PAUSES:
            if not is_retried(int(answer.get("status", -1))):
                break
            time.sleep(pause)
            answer = self._request(url, options, task_vars)
        return outcome_of(int(answer.get("status", -1)), str(answer.get("content", "")), str(answer.get("msg", "")))

    def _request(self, url: str, options: Result, task_vars: dict[str, t.Any] | None) -> Result:
        request = {
            "url": url,
            "method": "POST",
            "headers": {"Authorization": f"Bearer {options['token']}", "Accept": "application/json"},
            "return_content": True,
            # the token is for this server only
            "follow_redirects": "none",
            "timeout": options["timeout"],
        }
        try:
            answer: Result = self._execute_module(
                module_name="ansible.builtin.uri", module_args=request, task_vars=task_vars
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
