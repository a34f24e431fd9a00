# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Reading the events of this VM: event_info, and ansible.builtin.uri with filters that do the same.

python tests/bench/bench_event_info.py [TIMES [ROUNDS]]
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path[:0] = [str(folder) for folder in Path(__file__).resolve().parents[1:3]]
from table import print_table, ratio

from playbooks import Cost, collections_path, run
from support import simulator_process

HEADERS = {"Metadata": "true"}
TRIVIAL = [{"ansible.builtin.ping": {}}]
EVENT_INFO = [{"azure_imds.scheduled_events.event_info": {"endpoint": "{{ endpoint }}"}, "register": "mine"}]
URI = [
    {
        "ansible.builtin.uri": {"url": "{{ endpoint }}/metadata/instance?api-version=2021-02-01", "headers": HEADERS},
        "register": "instance",
    },
    {
        "ansible.builtin.uri": {
            "url": "{{ endpoint }}/metadata/scheduledevents?api-version=2020-07-01",
            "headers": HEADERS,
        },
        "register": "document",
        "failed_when": "document.status != 200 or document.json.Events is not defined",
    },
    {
        "ansible.builtin.set_fact": {
            "mine": "{{ document.json.Events | selectattr('Resources', 'contains', instance.json.compute.name) "
            "| map('dict2items') | map('items2dict') | list }}"
        }
    },
]


def main() -> None:
    times, rounds = ([int(argument) for argument in sys.argv[1:]] + [15, 3][len(sys.argv) - 1 :])[:2]
    collections = collections_path()
    scenario = {
        "groups": {"pair": {"kind": "availability_set", "vms": {"vm1": {}, "vm2": {}}}},
        "events": [{"type": "Reboot", "resources": [name], "notice": "1h"} for name in ("vm1", "vm2")],
        "knobs": {"rate_limit": 0},
    }
    with simulator_process.start(scenario) as azure:
        endpoint = azure.endpoints["vm1"]

        def cost(tasks: list[dict[str, Any]]) -> Cost:
            return run([{"hosts": "all", "gather_facts": False, "tasks": tasks * times}], endpoint, collections)

        # in turns, so that other work of the machine affects all three alike; the best time of each
        # is the least disturbed
        taken = [(cost([]), cost(TRIVIAL), cost(EVENT_INFO), cost(URI)) for _round in range(rounds)]
    rows = []
    for name in ("wall", "controller", "host"):
        empty, trivial, ours, other = (min(getattr(measured, name) for measured in column) for column in zip(*taken))
        least, mine, theirs = ((seconds - empty) / times * 1000 for seconds in (trivial, ours, other))
        rows.append([name + ", ms", f"{least:.0f}", f"{mine:.0f}", f"{theirs:.0f}", ratio(mine, theirs)])
    title = f"Reading the events of this VM once (mean of {times}, best of {rounds} rounds)"
    print_table(title, ["", "ping", "event_info", "uri + filters", "event_info / uri"], rows)
    print(
        "wall is wall-clock time; controller and host are CPU time. A playbook without tasks is subtracted. "
        "ping is the cost of any module."
    )


if __name__ == "__main__":
    main()
