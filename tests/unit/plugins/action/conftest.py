# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os

import pytest
from ansible.inventory.manager import InventoryManager
from ansible.parsing.dataloader import DataLoader
from ansible.playbook.block import Block
from ansible.playbook.play import Play
from ansible.playbook.play_context import PlayContext
from ansible.playbook.task import Task
from ansible.plugins.loader import connection_loader
from ansible.template import Templar
from ansible.vars.manager import VariableManager


@pytest.fixture
def run_action(monkeypatch):
    """Return a function that runs an action plugin, and returns its result and the arguments of the modules it ran.

    It runs in a play of vm1 and vm2. Each module has the same answer.
    """

    def run(action, answer=None, strategy="linear", variables=None, **options):
        ran = []

        def execute(plugin, module_args=None, **dummy):
            ran.append(module_args)
            return answer

        monkeypatch.setattr(action, "_execute_module", execute)
        loader = DataLoader()
        inventory = InventoryManager(loader=loader, sources="vm1,vm2,")
        manager = VariableManager(loader=loader, inventory=inventory)
        play = Play.load({"hosts": "all", "strategy": strategy}, variable_manager=manager, loader=loader)
        task = Task.load(
            {"action": "ansible.builtin.debug"}, block=Block(play=play), variable_manager=manager, loader=loader
        )
        task.args = options
        context = PlayContext()
        connection = connection_loader.get("local", context, os.devnull)
        plugin = action(task, connection, context, loader, Templar(loader), None)
        return plugin.run(task_vars=variables or {}), ran

    return run
