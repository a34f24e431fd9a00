# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Run a playbook against a simulator and measure its CPU time on the controller and on the host."""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from support.repository import REPOSITORY
from tools.repository.collection_tree import copy_tree

# replaces the host's Python and writes the CPU time of each module run; bash itself adds 2 ms
SHIM = """#!/bin/bash
"%(python)s" "$@"
status=$?
times >> "%(notes)s"
exit $status
"""


class Cost(NamedTuple):
    """Seconds by the wall clock, of CPU on the controller, and of CPU in modules; ``end`` is a Unix time."""

    wall: float
    controller: float
    host: float
    end: float


def run(plays: list[dict[str, Any]], endpoint: str, collections: Path) -> Cost:
    """Run plays with ansible-playbook over a local connection; RuntimeError if they fail."""
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        notes, shim, playbook = folder / "times", folder / "python", folder / "playbook.yml"
        notes.touch()
        shim.write_text(SHIM % {"python": sys.executable, "notes": notes})
        shim.chmod(0o755)
        playbook.write_text(json.dumps(plays))
        variables = {"ansible_connection": "local", "ansible_python_interpreter": str(shim), "endpoint": endpoint}
        command = [
            str(Path(sys.executable).with_name("ansible-playbook")),
            "-i",
            "host,",
            "-e",
            json.dumps(variables),
            str(playbook),
        ]
        environment = {**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(collections), "ANSIBLE_HOME": str(folder)}
        before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.time()
        ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        end, after = time.time(), resource.getrusage(resource.RUSAGE_CHILDREN)
        if ran.returncode:
            raise RuntimeError(ran.stdout + ran.stderr)
        total = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        host = host_seconds(notes.read_text())
        return Cost(end - started, total - host, host, end)


def host_seconds(notes: str) -> float:
    """Return the CPU seconds of children in the output of bash's `times`: every second line is theirs."""
    children = notes.splitlines()[1::2]
    return sum(
        60 * float(minutes) + float(seconds)
        for line in children
        for minutes, seconds in re.findall(r"(\d+)m([\d.]+)s", line)
    )


def collections_path() -> Path:
    folder = REPOSITORY / ".cache" / "trees" / "bench"
    copy_tree(REPOSITORY, folder)
    return folder
