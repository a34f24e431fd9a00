# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The cost of the action plugin of event_info on a Linux host, which passes the task on to the module.

python tests/bench/bench_action_plugin.py [TIMES [ROUNDS]]
"""

from __future__ import annotations

import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from table import print_table

from playbooks import Cost, collections_path, run
from support import simulator_process
from support.repository import REPOSITORY
from tools.repository.collection_tree import copy_tree

TASK = {"azure_imds.scheduled_events.event_info": {"endpoint": "{{ endpoint }}"}}
PLUGIN = Path("ansible_collections/azure_imds/scheduled_events/plugins/action/event_info.py")


def main() -> None:
    times, rounds = ([int(argument) for argument in sys.argv[1:]] + [10, 15][len(sys.argv) - 1 :])[:2]
    with_plugin = collections_path()
    without_plugin = REPOSITORY / ".cache" / "trees" / "bench-without-plugin"
    copy_tree(REPOSITORY, without_plugin)
    (without_plugin / PLUGIN).unlink()
    scenario = {"groups": {"one": {"kind": "availability_set", "vms": {"vm1": {}}}}, "knobs": {"rate_limit": 0}}
    with simulator_process.start(scenario) as azure:

        def cost(collections: Path) -> Cost:
            plays = [{"hosts": "all", "gather_facts": False, "tasks": [TASK] * times}]
            return run(plays, azure.endpoints["vm1"], collections)

        cost(with_plugin)
        cost(without_plugin)
        # in turns and in both orders, so that other work of the machine affects both alike
        taken = []
        for number in range(rounds):
            pair = [without_plugin, with_plugin][:: 1 if number % 2 else -1]
            costs = {collections: cost(collections) for collections in pair}
            taken.append((costs[without_plugin], costs[with_plugin]))
    rows = []
    for name in ("wall", "controller"):
        pairs = [[getattr(one, name) / times * 1000 for one in pair] for pair in taken]
        alone, passed = (statistics.median(column) for column in zip(*pairs))
        difference = statistics.median(after - before for before, after in pairs)
        rows.append([name + ", ms", f"{alone:.1f}", f"{passed:.1f}", f"{difference:+.1f}"])
    title = f"A task with event_info on a Linux host (medians of {rounds} rounds with {times} tasks)"
    print_table(title, ["", "module alone", "with action plugin", "difference"], rows)
    print("wall is wall-clock time; controller is CPU time of ansible-playbook and its workers.")


if __name__ == "__main__":
    main()
