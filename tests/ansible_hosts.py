# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""This machine as hosts of Ansible's, to run modules and playbooks for real."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Mapping, Optional

from tools.tree import copy_tree

REPOSITORY = Path(__file__).resolve().parents[1]
COLLECTION = "azure_imds.scheduled_events."


class Hosts:
    """Hosts over local connections, with variables for each.

    Args:
        folder: where inventory and Ansible's own files go.
        variables: name of the host -> its variables.
    """

    def __init__(self, folder: Path, variables: Mapping[str, Mapping[str, Any]]) -> None:
        collections = REPOSITORY / ".cache" / "trees" / "ansible"
        copy_tree(REPOSITORY, collections)
        common = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
        inventory = {"all": {"hosts": {name: dict(own) for name, own in variables.items()}, "vars": common}}
        self._inventory = folder / "inventory.json"
        self._inventory.write_text(json.dumps(inventory))
        self.warned = ""
        self.environment = {
            **os.environ,
            "ANSIBLE_COLLECTIONS_PATH": str(collections),
            "ANSIBLE_HOME": str(folder / "ansible"),
            "ANSIBLE_NOCOLOR": "1",
        }

    def playbook(self, playbook: str, variables: Optional[Mapping[str, Any]] = None, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a playbook: a file, or a name in this collection. `words` are further ones for the command line, such as --check."""
        given = ["-e", json.dumps(variables)] if variables else []
        return self._run("ansible-playbook", *given, *words, playbook)

    def module(self, host: str, name: str, *words: str, **options: Any) -> dict[str, Any]:
        """Run one module of this collection on a host; its result, also when it fails. Warnings are then in ``warned``."""
        given = ["-a", json.dumps(options)] if options else []
        ran = self._run("ansible", host, "-m", COLLECTION + name, *given, *words)
        # Ansible breaks lines where it likes
        self.warned = " ".join(ran.stderr.split())
        match = re.search(r"^\w+ \| \w+!? => (\{.*\})", ran.stdout, re.DOTALL | re.MULTILINE)
        if match is None:
            raise AssertionError(ran.stdout + ran.stderr)
        result: dict[str, Any] = json.loads(match.group(1))
        return result

    def _run(self, program: str, *words: str) -> subprocess.CompletedProcess[str]:
        command = [str(Path(sys.executable).with_name(program)), "-i", str(self._inventory), *words]
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=180, check=False)
