# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Hosts of the lab in an inventory of Ansible."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.ansible_hosts import COLLECTION, Hosts
from support.hosts.host import Host

HERE = Path(__file__).resolve().parent
RECAP = re.compile(r"^(\S+)\s+: ok=\d+\s+changed=(\d+)\s+unreachable=(\d+)\s+failed=(\d+)", re.MULTILINE)
CHANGED_TASK = re.compile(
    r"^(?:TASK|RUNNING HANDLER) \[(?:[\w.]+ : )?([^\]]+)\] \**\n(?:(?!\nTASK|\nRUNNING HANDLER)[\s\S])*?^changed: ",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Applied:
    """The result of ansible-playbook."""

    status: int
    text: str

    @property
    def changed(self) -> int:
        """Return the number of changed tasks on all hosts together."""
        return sum(int(match[2]) for match in RECAP.finditer(self.text))

    @property
    def changed_tasks(self) -> list[str]:
        return CHANGED_TASK.findall(self.text)


def ansible_on(hosts: Mapping[str, Host], folder: Path) -> Hosts:
    """Return an inventory of these hosts, with the connection plugin nsenter."""
    reached = {
        name: {
            "ansible_connection": "nsenter",
            "ansible_nsenter_keeper": str(host.keeper),
            "ansible_python_interpreter": "/usr/bin/python3",
        }
        for name, host in hosts.items()
    }
    ansible = Hosts(folder, reached)
    ansible.environment |= {
        "ANSIBLE_CONNECTION_PLUGINS": str(HERE / "connection"),
        "ANSIBLE_PIPELINING": "1",
        "ANSIBLE_LOCAL_TEMP": str(folder / "tmp"),
        "PYTHONPATH": str(HERE.parents[1]),
    }
    return ansible


def apply_role(ansible: Hosts, folder: Path, role: str, variables: Mapping[str, Any], *words: str) -> Applied:
    """Apply a role of this collection to all hosts.

    ``variables`` are those of the role without their prefix, ``words`` further arguments of ansible-playbook.
    """
    playbook = folder / f"apply-{role}.json"
    playbook.write_text(
        json.dumps([{"hosts": "all", "gather_facts": False, "roles": [COLLECTION + role]}]), encoding="utf-8"
    )
    prefixed = {f"{role}_{name}": value for name, value in variables.items()}
    ran = ansible.playbook(str(playbook), prefixed, *words)
    return Applied(ran.returncode, ran.stdout + ran.stderr)
