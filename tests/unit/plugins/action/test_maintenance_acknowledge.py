# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: GPL-3.0-or-later
"""The requests of one attempt to approve through Azure Resource Manager."""

from __future__ import annotations

import os

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.playbook.play_context import PlayContext
from ansible.playbook.task import Task
from ansible.plugins.loader import connection_loader
from ansible.template import Templar
from ansible_collections.azure_imds.scheduled_events.plugins.action.maintenance_acknowledge import ActionModule

OPTIONS = {
    "endpoint": "https://management.azure.com",
    "token": "eyJ0.ab",
    "resource_id": "/subscriptions/8d5b8fe2/resourceGroups/group/providers/Microsoft.Compute/virtualMachines/vm1",
    "decisions": [{"event_id": "Ab-1", "event_type": "Freeze", "resources": ["vm1"]}],
}


@pytest.mark.parametrize("answer", [{"msg": "no route"}, {"status": 429}, {"status": 503}], ids=str)
def test_request_that_failed_is_not_repeated_before_the_events_are_read_again(monkeypatch, answer):
    requests = []

    def uri(plugin, module_args, **dummy):
        requests.append(module_args["url"])
        return answer

    monkeypatch.setattr(ActionModule, "_execute_module", uri)
    loader, context = DataLoader(), PlayContext()
    task = Task.load({"action": "ansible.builtin.debug"}, loader=loader)
    task.args = OPTIONS
    connection = connection_loader.get("local", context, os.devnull)
    result = ActionModule(task, connection, context, loader, Templar(loader), None).run(task_vars={})
    assert result["failed"] and len(requests) == 1
