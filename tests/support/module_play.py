# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""One play for the module runs of many cases, because a process of Ansible per run costs more than the run."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from support.ansible_hosts import COLLECTION, Hosts
from support.repository import REPOSITORY


class Run(NamedTuple):
    """One run of a module of this collection; ``keywords``: further ones of the task, such as check_mode."""

    module: str
    options: Mapping[str, Any]
    keywords: Mapping[str, Any] = {}


def constant_of(module: str, name: str) -> str:
    """Return the text of a constant of a module of this collection, such as EXAMPLES."""
    source = (REPOSITORY / "plugins" / "modules" / f"{module}.py").read_text(encoding="utf-8")
    assigned = [each for each in ast.parse(source).body if isinstance(each, ast.Assign)]
    (value,) = [each.value for each in assigned if ast.unparse(each.targets[0]) == name]
    return str(ast.literal_eval(value))


def run_modules(hosts: Hosts, folder: Path, runs: Mapping[str, Run]) -> dict[str, dict[str, dict[str, Any]]]:
    """Run these modules in order on all hosts, of which the first is this machine, also after one that fails.

    ``runs``: name of the task -> run. Returns host -> name of the task -> result, with its warnings.
    """
    registered = {name: f"run_{number}" for number, name in enumerate(runs)}
    tasks: list[dict[str, Any]] = [
        {
            "name": name,
            COLLECTION + run.module: dict(run.options),
            "register": registered[name],
            "ignore_errors": True,
            **run.keywords,
        }
        for name, run in runs.items()
    ]
    results = ", ".join(f"{json.dumps(name)}: {variable}" for name, variable in registered.items())
    written = {"content": "{{ {%s} | to_json }}" % results, "dest": f"{folder}/{{{{ inventory_hostname }}}}.results"}
    tasks.append({"name": "Write the results", "ansible.builtin.copy": written, "delegate_to": "localhost"})
    playbook = folder / "modules.yml"
    playbook.write_text(json.dumps([{"hosts": "all", "gather_facts": False, "tasks": tasks}]))
    ran = hosts.playbook(str(playbook))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return {path.stem: json.loads(path.read_text()) for path in folder.glob("*.results")}
