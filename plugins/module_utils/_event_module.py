# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Runs the work of an event module as a module, on the host itself."""

from __future__ import annotations

import typing as t

from ansible.module_utils.basic import AnsibleModule, missing_required_lib

from ._event_tasks.event_task import EventCall, EventTask, InvalidOptions, Result, failure, shared_options
from .azure_scheduled_events.errors import ImdsError
from .azure_scheduled_events.selection import Selection
from .azure_scheduled_events.transport import REQUESTS_IMPORT_ERROR


def event_module(
    timeout: float, options: t.Mapping[str, t.Any], needs_requests: bool = True, **rules: t.Any
) -> tuple[AnsibleModule, EventCall]:
    """Return a module with the shared options, and its call.

    Args:
        timeout: default of the option of that name, in seconds.
        options: argument spec of further options.
        needs_requests: whether to fail if the library is missing; else the session raises ImdsError.
        **rules: further arguments of AnsibleModule.
    """
    spec = dict(shared_options(timeout), **options)
    module = AnsibleModule(argument_spec=spec, supports_check_mode=True, **rules)
    if needs_requests and REQUESTS_IMPORT_ERROR is not None:
        module.fail_json(msg=missing_required_lib("requests"), exception=REQUESTS_IMPORT_ERROR)
    try:
        return module, EventCall(module.params, module.check_mode, module.warn)
    except InvalidOptions as error:
        end(module, failure(error))


def parse_selection(module: AnsibleModule, call: EventCall) -> Selection:
    """Return the selection of the module's options; fail if a value is unusable."""
    try:
        return call.selection()
    except InvalidOptions as error:
        end(module, failure(error))


def end(module: AnsibleModule, result: Result) -> t.NoReturn:
    """End the module with the result of its work."""
    if result.pop("failed", False):
        module.fail_json(**result)
    module.exit_json(**result)
    raise AssertionError("AnsibleModule.exit_json returned")


def run_task(task: EventTask) -> None:
    """Run one of the event modules."""
    module, call = event_module(task.timeout, task.options, task.needs_requests, **task.rules)
    try:
        result = task.work(call)
    except (ImdsError, InvalidOptions) as error:
        result = failure(error)
    end(module, result)
