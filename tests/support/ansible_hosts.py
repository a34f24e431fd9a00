# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""This machine as hosts of Ansible, to run modules and playbooks."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from support.repository import REPOSITORY
from tools.repository.collection_tree import copy_tree

COLLECTION = "azure_imds.scheduled_events."
# seconds; long, because only a hanging process takes all of it
TIMEOUT = 600


class KillController(Exception):
    """Raised by a function of `at`: ansible-playbook is killed, and the processes that it has started continue."""


class Hosts:
    """Hosts over local connections; ``variables`` maps the name of a host to its variables."""

    def __init__(self, folder: Path, variables: Mapping[str, Mapping[str, Any]]) -> None:
        collections = REPOSITORY / ".cache" / "trees" / "ansible"
        copy_tree(REPOSITORY, collections)
        common = {
            "ansible_connection": "local",
            "ansible_python_interpreter": sys.executable,
            "ansible_pipelining": True,
            # in a new home directory Ansible does not find its first asynchronous job
            "ansible_async_dir": str(folder / "async"),
        }
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

    def playbook(
        self,
        playbook: str,
        variables: Mapping[str, Any] | None = None,
        *words: str,
        at: Mapping[str, Callable[[], object]] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run a playbook: a file, or a name in this collection.

        Args:
            words: further arguments, such as --check.
            at: name of a play, or of a task under the strategy linear -> function to call when it
                begins for the first time; the tasks before it have ended on all hosts. Under other
                strategies Ansible prints the name of a task with its first result.
        """
        given = ["-e", json.dumps(variables)] if variables else []
        command = self._command("ansible-playbook", *given, *words, playbook)
        due = dict(at or {})
        said: list[str] = []
        with tempfile.TemporaryFile("w+") as errors:
            with subprocess.Popen(
                command, env=self.environment, stdout=subprocess.PIPE, stderr=errors, text=True
            ) as process:
                limit = threading.Timer(TIMEOUT, process.kill)
                limit.start()
                try:
                    for line in process.stdout or ():
                        said.append(line)
                        begins = re.match(r"(?:TASK|PLAY) \[(?:\S+ : )?(.*)\] \*", line)
                        if begins and begins[1] in due:
                            due.pop(begins[1])()
                except KillController:
                    process.kill()
                except BaseException:
                    process.kill()
                    raise
                finally:
                    limit.cancel()
            errors.seek(0)
            return subprocess.CompletedProcess(command, process.returncode, "".join(said), errors.read())

    def module(self, host: str, name: str, *words: str, **options: Any) -> dict[str, Any]:
        """Run one module of this collection; return its result, also of a failure, with its warnings in ``warned``."""
        given = ["-a", json.dumps(options)] if options else []
        command = self._command("ansible", host, "-m", COLLECTION + name, *given, *words)
        ran = subprocess.run(
            command, env=self.environment, capture_output=True, text=True, timeout=TIMEOUT, check=False
        )
        # Ansible wraps lines
        self.warned = " ".join(ran.stderr.split())
        match = re.search(r"^\w+ \| \w+!? => (\{.*\})", ran.stdout, re.DOTALL | re.MULTILINE)
        if match is None:
            raise AssertionError(ran.stdout + ran.stderr)
        result: dict[str, Any] = json.loads(match.group(1))
        return result

    def _command(self, program: str, *words: str) -> list[str]:
        return [str(Path(sys.executable).with_name(program)), "-i", str(self._inventory), *words]
