# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The modules that the role `maintenance` runs on a host, in this process: their real code, with a session of the test.

The options of module event_approve are those in the role's own task file.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any, NoReturn
from unittest import mock

import yaml
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils._event_tasks.approve import EVENT_APPROVE
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils._event_tasks.event_task import (
    EventCall,
    InvalidOptions,
    failure,
    shared_options,
)
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.errors import ImdsError
from jinja2.nativetypes import NativeEnvironment

from support.repository import REPOSITORY

Variables = dict[str, Any]
# takes ConnectionOptions and an interval
Connect = Callable[[Any, float], Any]

_APPROVE = REPOSITORY / "roles" / "maintenance" / "tasks" / "approve_by_module.yml"
_NATIVE = NativeEnvironment()
_INFO = importlib.import_module("ansible_collections.azure_imds.scheduled_events.plugins.modules.maintenance_info")


def event_approve(decision: Mapping[str, Any], connect: Connect, receipts: str) -> Variables:
    """Return the result of module event_approve for a decision of the role, as an item of the task's loop."""
    params = {**_defaults(EVENT_APPROVE.argument_spec()), **_options_of_role(decision), "receipts": receipts}
    try:
        result = EVENT_APPROVE.work(EventCall(params, False, lambda text: None, connect))
    except (ImdsError, InvalidOptions) as error:
        result = failure(error)
    return {"item": dict(decision), **result}


def read_maintenance(connect: Connect, **given: Any) -> Variables:
    """Return the result of module maintenance_info with these options."""

    def opened(timeout: float, options: Mapping[str, Any], needs_requests: bool) -> tuple[_Module, EventCall]:
        params = {**_defaults({**shared_options(timeout), **options}), **given}
        return _Module(params), EventCall(params, False, lambda text: None, connect)

    with mock.patch.object(_INFO, "event_module", opened):
        try:
            _INFO.main()
        except _Ended as ended:
            return ended.result
    raise AssertionError("maintenance_info has not ended")


class _Ended(Exception):
    """A module has ended with this result."""

    def __init__(self, result: Variables) -> None:
        super().__init__()
        self.result = result


class _Module:
    """The part of AnsibleModule that module maintenance_info uses."""

    def __init__(self, params: Mapping[str, Any]) -> None:
        self.params = params

    def exit_json(self, **result: Any) -> NoReturn:
        raise _Ended(result)

    def fail_json(self, **result: Any) -> NoReturn:
        raise _Ended({"failed": True, **result})


def _defaults(spec: Mapping[str, Mapping[str, Any]]) -> Variables:
    return {name: option.get("default") for name, option in spec.items()}


def _options_of_role(decision: Mapping[str, Any]) -> Variables:
    """Return the options in the task file for a decision, without those that are omitted by default."""
    tasks = yaml.safe_load(_APPROVE.read_text(encoding="utf-8"))
    (options,) = (task[name] for task in tasks for name in task if name.endswith(".event_approve"))
    return {name: _rendered(value, decision) for name, value in options.items() if "omit" not in str(value)}


def _rendered(value: Any, decision: Mapping[str, Any]) -> Any:
    if isinstance(value, str):
        return _NATIVE.from_string(value).render(item=decision)
    if isinstance(value, list):
        return [_rendered(each, decision) for each in value]
    return {name: _rendered(each, decision) for name, each in value.items()} if isinstance(value, dict) else value
