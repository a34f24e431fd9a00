# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The three handlings of events that the demonstration compares."""

from __future__ import annotations

import json
from pathlib import Path

from demo.run import Handling
from demo.topology import HERE, Topology, install_unit
from support.hosts.ansible_inventory import ansible_on
from support.hosts.host import Host
from support.wait import wait_until

SAMPLE_UNIT = """\
[Unit]
Description=Handling of the documentation's sample
[Service]
ExecStart=/usr/bin/python3 /srv/sample_script.py
Restart=always
RestartSec=1
[Install]
WantedBy=multi-user.target
"""


def install_nothing(topology: Topology, folder: Path) -> None:
    """Leave the hosts as they are."""


def install_sample(topology: Topology, folder: Path) -> None:
    """Run the equivalent of the documentation's sample on each host."""
    for host in topology.handled.values():
        text = (HERE / "sample_script.py").read_text(encoding="utf-8")
        host.file("/srv/sample_script.py").write_text(text, encoding="utf-8")
        install_unit(host, "sample-script", SAMPLE_UNIT)


def install_hook_runner(topology: Topology, folder: Path) -> None:
    """Apply the role hook_runner with ready hooks, as site.yml has it."""
    files = folder / "ansible"
    files.mkdir()
    ansible = ansible_on(topology.handled, files)
    given = {"hook_runner_install_packages": False}
    applied = ansible.playbook(str(HERE / "site.yml"), given, "--forks", str(len(topology.handled)))
    if applied.returncode:
        raise RuntimeError(applied.stdout + applied.stderr)
    for name, host in topology.handled.items():
        wait_until(lambda: is_watching(host), f"the hook runner of {name} polls")


def is_watching(host: Host) -> bool:
    answer = host.run(["azure-scheduled-events", "status", "--json"], check=False)
    return answer.returncode == 0 and bool(json.loads(answer.stdout)["imds"]["ok"])


def hook_runner_logs(topology: Topology) -> str:
    """Return the history and the log of each hook runner."""
    found = []
    for name, host in topology.handled.items():
        if not host.is_up or host.is_frozen:
            continue
        log = ["journalctl", "--no-pager", "--lines=300", "--output=short-precise"]
        units = ["--unit=azure-scheduled-events*", "--unit=postgresql@*", "--unit=shop"]
        found += [f"===== {name}", host.run([*log, *units], check=False).stdout]
        script = "azure-scheduled-events history --json; tail -n 40 /var/log/postgresql/*.log"
        found.append(host.run(["sh", "-c", script], check=False).stdout)
    return "\n".join(found)


OURS = "ours"
HANDLINGS = {
    "nothing": Handling("nothing installed", install_nothing),
    "sample": Handling("documentation's sample", install_sample),
    OURS: Handling("hook runner, ready hooks", install_hook_runner, hook_runner_logs),
}
