# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The cost of the action plugin of event_info on a Linux host, which passes the task on to the module.

The host answers at once instead of running the module, whose time would hide the difference.

python tests/bench/bench_action_plugin.py [TIMES [ROUNDS]]
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

sys.path[:0] = [str(folder) for folder in Path(__file__).resolve().parents[1:3]]
from table import print_table

from playbooks import collections_path
from support.repository import REPOSITORY
from tools.repository.collection_tree import copy_tree

MODULE = "azure_imds.scheduled_events.event_info"
PLUGIN = Path("ansible_collections/azure_imds/scheduled_events/plugins/action/event_info.py")
HOST = """#!/bin/sh
echo '{"changed": false}'
"""


class Cost(NamedTuple):
    """Milliseconds for each task by the wall clock, and of CPU."""

    wall: float
    controller: float


def main() -> None:
    times, rounds = ([int(argument) for argument in sys.argv[1:]] + [20, 15][len(sys.argv) - 1 :])[:2]
    with_plugin = collections_path()
    without_plugin = REPOSITORY / ".cache" / "trees" / "bench-without-plugin"
    copy_tree(REPOSITORY, without_plugin)
    (without_plugin / PLUGIN).unlink()
    taken = []
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        # in turns and in both orders, so that other work of the machine affects both alike
        for number in range(rounds):
            pair = [without_plugin, with_plugin][:: 1 if number % 2 else -1]
            costs = {collections: cost(folder, collections, times) for collections in pair}
            taken.append((costs[without_plugin], costs[with_plugin]))
    rows = []
    for kind in Cost._fields:
        pairs = [[getattr(one, kind) for one in pair] for pair in taken]
        alone, passed = (statistics.median(column) for column in zip(*pairs))
        difference = statistics.median(after - before for before, after in pairs)
        rows.append([kind + ", ms", f"{alone:.1f}", f"{passed:.1f}", f"{difference:+.1f}"])
    title = f"A task with event_info on a Linux host, without the module (medians of {rounds} rounds of {times} tasks)"
    print_table(title, ["", "without action plugin", "with it", "difference"], rows)
    print("wall is wall-clock time; controller is CPU time of ansible-playbook and its workers.")


def cost(folder: Path, collections: Path, times: int) -> Cost:
    """Return the cost of a task in a playbook with these many."""
    python, playbook = folder / "python", folder / "playbook.yml"
    python.write_text(HOST)
    python.chmod(0o755)
    playbook.write_text(json.dumps([{"hosts": "all", "gather_facts": False, "tasks": [{MODULE: {}}] * times}]))
    variables = {"ansible_connection": "local", "ansible_python_interpreter": str(python)}
    program = str(Path(sys.executable).with_name("ansible-playbook"))
    environment = {**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(collections), "ANSIBLE_HOME": str(folder)}
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    command = [program, "-i", "host,", "-e", json.dumps(variables), str(playbook)]
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
    wall, after = time.monotonic() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(wall / times * 1000, used / times * 1000)


if __name__ == "__main__":
    main()
