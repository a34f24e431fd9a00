# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Record the playbook maintenance for two VMs, from their report; the tasks that prepare and recover sleep."""

from __future__ import annotations

import json
import platform
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

from support.ansible_hosts import Hosts
from support.maintenance.reports import rows
from tools.pictures.time_lines.recording import Lane, Recording, lane
from tools.pictures.time_lines.runs.azure_side import EVENT, Account, azure, collection_version

VMS = ("vm1", "vm2")
# step -> VM -> seconds that its tasks take
SECONDS = {"prepare": {"vm1": 3, "vm2": 6}, "recover": {"vm1": 2, "vm2": 2}}
STEPS = ("prepared", "approved", "started", "over", "recovered")
DATE = "date +%%s.%%N >> '%(file)s'"
WAIT = "Wait until Azure announces an event"


def record() -> Recording:
    """Run the playbook through an event and return the recording."""
    with azure(*VMS) as simulator, tempfile.TemporaryDirectory(prefix="recorded-") as name:
        folder = Path(name)
        hosts = Hosts(folder, {vm: variables(folder, vm, simulator.endpoints[vm]) for vm in VMS})
        hosts.environment["ANSIBLE_SHOW_CUSTOM_STATS"] = "1"
        announced: list[str] = []

        def announce() -> None:
            announced.append(simulator.post("/events", {**EVENT, "resources": list(VMS)})["id"])

        ran = hosts.playbook(str(write_playbook(folder)), at={WAIT: announce})
        if ran.returncode:
            raise RuntimeError(f"the playbook failed:\n{ran.stdout}{ran.stderr}")
        account = Account(simulator, announced[0])
        return Recording(
            f"Playbook: {EVENT['type']} of {' and '.join(VMS)}",
            {**collection_version(), "ansible-core": version("ansible-core"), "Python": platform.python_version()},
            account.not_before,
            (account.lane(), *(vm_lane(account, row, folder) for row in rows(ran).values())),
        )


def variables(folder: Path, vm: str, endpoint: str) -> dict[str, Any]:
    """Return the variables of a host."""
    return {
        "maintenance_endpoint": endpoint,
        "maintenance_receipts": str(folder / vm / "receipts"),
        "maintenance_notes": str(folder / vm / "notes"),
        **{f"{step}_seconds": seconds[vm] for step, seconds in SECONDS.items()},
    }


def write_playbook(folder: Path) -> Path:
    """Write a playbook that waits for an event and then imports the playbook maintenance."""
    given: dict[str, str] = {"maintenance_hosts": "all"}
    for step in SECONDS:
        tasks = folder / f"{step}.yml"
        command = "; ".join([DATE, f"sleep {{{{ {step}_seconds }}}}", DATE]) % {"file": times_file(folder, step)}
        tasks.write_text(json.dumps([{"name": f"Take the time of the {step} tasks", "ansible.builtin.shell": command}]))
        given[f"maintenance_{step}"] = str(tasks)
    options = {"endpoint": "{{ maintenance_endpoint }}", "state": "scheduled", "timeout": 60}
    playbook = folder / "playbook.yml"
    playbook.write_text(
        json.dumps(
            [
                {
                    "hosts": "all",
                    "gather_facts": False,
                    "tasks": [{"name": WAIT, "azure_imds.scheduled_events.event_wait": options}],
                },
                {"import_playbook": "azure_imds.scheduled_events.maintenance", "vars": given},
            ]
        )
    )
    return playbook


def times_file(folder: Path, step: str, vm: str = "{{ inventory_hostname }}") -> Path:
    """Return the file in which the tasks of a step write their begin and their end."""
    return folder / f"{step}-{vm}"


def vm_lane(account: Account, row: dict[str, Any], folder: Path) -> Lane:
    """Return the lane of a VM from its row of the report and the times of its tasks."""
    steps = [(account.after(row[step]), step) for step in STEPS if row[step]]
    seen = account.seconds_of("seen", vm=row["vm"])
    work = []
    for step in SECONDS:
        begin, end = map(float, times_file(folder, step, row["vm"]).read_text(encoding="utf-8").split())
        work.append((begin - account.began, end - account.began, f"{step} tasks"))
    return lane(row["vm"], [(seen, "seen"), *steps], work)
