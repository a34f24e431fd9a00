# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Waiting a minute for an event: event_wait, and ansible.builtin.uri in an until loop at the same interval.

python tests/bench/bench_event_wait.py [SECONDS]
"""

from __future__ import annotations

import statistics
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

sys.path[:0] = [str(folder) for folder in Path(__file__).resolve().parents[1:3]]
from table import print_table, ratio

from playbooks import Cost, collections_path, run
from support import simulator_process

EVENT_WAIT = {
    "azure_imds.scheduled_events.event_wait": {"endpoint": "{{ endpoint }}", "state": "present", "timeout": 600}
}
URI = {
    "ansible.builtin.uri": {
        "url": "{{ endpoint }}/metadata/scheduledevents?api-version=2020-07-01",
        "headers": {"Metadata": "true"},
        "return_content": True,
    },
    "register": "answer",
    "until": "answer.json is defined and answer.json.Events | selectattr('Resources', 'contains', 'vm1') | length > 0",
    "retries": 600,
    "delay": 1,
}


# moments within an interval at which events may appear
PHASES = (3.1, 3.3, 3.5, 3.7, 3.9)


class Wait:
    """One measured wait; ``delay``: seconds from the appearance of the event to the end of the playbook."""

    def __init__(self, task: dict[str, Any], seconds: float, collections: Path) -> None:
        scenario = {
            "begin": "first_request",
            "groups": {"single": {"kind": "standalone", "vms": {"vm1": {}}}},
            "events": [{"type": "Reboot", "resources": ["vm1"], "at": seconds}],
        }
        with simulator_process.start(scenario) as azure:
            self.cost: Cost = run(
                [{"hosts": "all", "gather_facts": False, "tasks": [task]}], azure.endpoints["vm1"], collections
            )
            self.requests = sum(count["count"] for count in azure.get("/requests")["counts"])
            (appeared,) = [line["time"] for line in azure.get("/log")["lines"] if line["what"] == "scheduled"]
        self.delay = self.cost.end - datetime.fromisoformat(appeared.replace("Z", "+00:00")).timestamp()


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    collections = collections_path()
    empty = run([{"hosts": "all", "gather_facts": False, "tasks": []}], "", collections)
    ours, other = Wait(EVENT_WAIT, seconds, collections), Wait(URI, seconds, collections)
    our_delay, other_delay = (
        statistics.median(Wait(task, phase, collections).delay for phase in PHASES) for task in (EVENT_WAIT, URI)
    )
    lines = [
        ("CPU of the controller, s", ours.cost.controller - empty.controller, other.cost.controller - empty.controller),
        ("CPU of the host, s", ours.cost.host, other.cost.host),
        ("requests to IMDS", ours.requests, other.requests),
        ("from an event to the end of the playbook, s", our_delay, other_delay),
    ]
    rows = [[name, f"{mine:.2f}", f"{theirs:.2f}", ratio(mine, theirs)] for name, mine, theirs in lines]
    print_table(
        f"Waiting {seconds:g} s for an event, one poll a second", ["", "event_wait", "uri + until", "ratio"], rows
    )
    print(f"CPU of the controller is without that of a playbook without tasks ({empty.controller:.2f} s).")
    print(
        "The delay is the median of %d short waits, in which the event appears at various moments between two polls."
        % len(PHASES)
    )


if __name__ == "__main__":
    main()
