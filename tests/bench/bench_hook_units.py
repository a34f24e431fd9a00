# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Hooks in units of systemd on a host: from an event to its hook, from a hook to the next one, memory, exposure.

PYTHONPATH=tests python -m support.hosts.namespaces python tests/bench/bench_hook_units.py [EVENTS]
"""

from __future__ import annotations

import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path[:0] = [str(folder) for folder in Path(__file__).resolve().parents[1:3]]
from table import print_table

from support.hosts.lab import Lab
from support.hosts.role_host import SERVICE, Azure, RoleHost, azure_of
from support.wait import wait_until

VM = "vm1"
STAMPS = "/var/lib/stamps"
# writes the time of its beginning and of its end
HOOK = f"#!/bin/sh\ndate +%s.%N >>{STAMPS}\nsleep 0.1\ndate +%s.%N >>{STAMPS}\n"
HOOKS, ROUNDS = 8, 8


def stamps(site: RoleHost, count: int) -> list[float]:
    """Wait for so many times, and return them."""
    file = site.host.file(STAMPS)

    def lines() -> list[str]:
        return file.read_text(encoding="utf-8").split() if file.exists() else []

    wait_until(lambda: len(lines()) >= count, f"{count} times", site.log)
    return [float(line) for line in lines()]


def end(site: RoleHost, azure: Azure, event: str) -> None:
    azure.simulator.post(f"/events/{event}/complete")
    wait_until(site.is_idle, "the event is closed", site.log)
    site.host.file(STAMPS).unlink()


def several_hooks(site: RoleHost, azure: Azure) -> list[float]:
    """Return the seconds from the beginning of the first hook to the end of the last one."""
    found = []
    for _round in range(ROUNDS):
        event = azure.announce("Freeze", VM, duration=0)
        times = stamps(site, 2 * HOOKS)
        found.append(times[-1] - times[0])
        end(site, azure, event)
    return sorted(found)


def first_instruction(site: RoleHost, azure: Azure, events: int) -> list[float]:
    """Return the seconds from the appearance of an event to its first hook."""
    found = []
    for _event in range(events):
        time.sleep(random.uniform(0, 1))
        began = time.time()
        event = azure.announce("Freeze", VM, duration=0)
        found.append(stamps(site, 1)[0] - began)
        stamps(site, 2 * HOOKS)
        end(site, azure, event)
    return sorted(found)


def main() -> None:
    events = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    hooks = [{"stage": "prepare", "name": f"2{number}-stamp", "content": HOOK} for number in range(HOOKS)]
    with tempfile.TemporaryDirectory(prefix="bench-") as name, Lab(Path(name) / "hosts") as lab:
        site = RoleHost(lab.host(VM), Path(name), hooks)
        with azure_of({VM: site.host}, Path(name)) as azure:
            site.must_apply(install_packages=True, config={"interval": 1})
            wait_until(site.watches, "the daemon polls", site.log)
            several, first = several_hooks(site, azure), first_instruction(site, azure, events)
            memory = site.host.run(["grep", "VmRSS", f"/proc/{site.process()}/status"]).stdout.split()[1]
            exposure = site.host.run(["systemd-analyze", "security", "--no-pager", SERVICE]).stdout.splitlines()[-1]
    rows = [
        [what, f"{found[0]:.3f}", f"{statistics.median(found):.3f}", f"{found[-1]:.3f}"]
        for what, found in (
            (f"{HOOKS} hooks of 0.1 s to the end of the last", several),
            ("from an event to the first instruction of a hook", first),
        )
    ]
    print_table("Hooks in units, s", ["", "least", "median", "most"], rows)
    print(f"Resident memory of the daemon: {int(memory) / 1024:.1f} MiB. {exposure}")


if __name__ == "__main__":
    main()
