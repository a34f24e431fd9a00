# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Hosts of the lab boot, reboot, crash, freeze and reach IMDS as the other tests need it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support import simulator_process
from support.hosts.apply_impact import Impacts
from support.hosts.bridge import IMDS
from support.hosts.enter_namespace import HostIsDown
from support.hosts.host import EPHEMERAL, Host
from support.hosts.lab import Lab
from support.wait import wait_until

pytestmark = pytest.mark.all

ASK = f"""
import json, urllib.request
url = "http://{IMDS}/metadata/instance?api-version=2021-02-01"
request = urllib.request.Request(url, headers={{"Metadata": "true"}})
print(json.dumps(json.load(urllib.request.urlopen(request, timeout=5))))
"""


@pytest.fixture(scope="module")
def vm2(lab: Lab) -> Host:
    return lab.host("vm2")


def instance_seen_by(host: Host) -> Any:
    return json.loads(host.run(["python3", "-c", ASK]).stdout)


def test_imds_distinguishes_hosts_by_their_address(vm1: Host, vm2: Host) -> None:
    scenario = {"groups": {"set": {"kind": "availability_set", "vms": {"vm1": {}, "vm2": {}}}}}
    sources = [word for host in (vm1, vm2) for word in ("--source", f"{host.name}={host.address}")]
    with simulator_process.start(scenario, sources, listen=f"{IMDS}:80"):
        assert [instance_seen_by(host)["compute"]["name"] for host in (vm1, vm2)] == ["vm1", "vm2"]


def test_host_starts_all_services(vm2: Host) -> None:
    assert vm2.run(["systemctl", "is-system-running"], check=False).stdout == "running\n"


@pytest.mark.parametrize(
    "ways", [[Host.reboot], [Host.power_off, Host.boot], [Host.crash, Host.boot]], ids=["reboot", "power off", "crash"]
)
def test_files_survive_a_restart_and_memory_does_not(vm2: Host, ways: list[Callable[[Host], None]]) -> None:
    before = vm2.boot_id
    vm2.run(["sh", "-c", "echo kept >/var/lib/kept; echo lost >/run/lost"])
    for way in ways:
        way(vm2)
    assert vm2.boot_id != before
    assert vm2.run(["cat", "/var/lib/kept"]).stdout == "kept\n"
    assert vm2.run(["test", "-e", "/run/lost"], check=False).returncode == 1


def test_ephemeral_disk_survives_a_reboot_and_not_a_redeploy(vm2: Host) -> None:
    kept = f"{EPHEMERAL}/kept"
    vm2.run(["touch", kept])
    vm2.reboot()
    assert vm2.run(["test", "-e", kept], check=False).returncode == 0
    vm2.redeploy()
    assert vm2.run(["test", "-e", kept], check=False).returncode == 1


def test_frozen_host_does_nothing_until_it_is_thawed(vm2: Host) -> None:
    vm2.run(["systemd-run", "--unit=counting", "sh", "-c", "while echo >>/var/lib/counted; do sleep 0.02; done"])
    counted = vm2.file("/var/lib/counted")
    wait_until(counted.exists, "it counts")
    vm2.freeze()
    wait_until(lambda: vm2.is_frozen, "it is frozen")
    size = counted.stat().st_size
    time.sleep(0.3)
    assert counted.stat().st_size == size
    vm2.thaw()
    wait_until(lambda: counted.stat().st_size > size, "it counts again")
    vm2.run(["systemctl", "stop", "counting"])


def test_impact_of_the_simulator_interrupts_the_host(vm2: Host, tmp_path: Path) -> None:
    before = vm2.boot_id
    with Impacts({"vm2": vm2}, tmp_path) as impacts:
        scenario = {"groups": {"single": {"vms": {"vm2": {}}}}, "impact": impacts.commands}
        with simulator_process.start(scenario, ["--clock", "manual"]) as azure:
            azure.post("/events", {"name": "update", "type": "Reboot", "resources": ["vm2"], "notice": "1m"})
            azure.advance(61)
            wait_until(lambda: impacts.happened == [("vm2", "reboot")], "it reboots")
    assert vm2.boot_id != before


def test_run_on_a_host_that_is_down_raises_an_error(vm2: Host) -> None:
    vm2.crash()
    try:
        assert not vm2.is_up
        with pytest.raises(HostIsDown):
            vm2.run(["true"])
    finally:
        vm2.boot()


def test_hosts_have_separate_files(vm1: Host, vm2: Host) -> None:
    vm1.run(["touch", "/etc/of-vm1"])
    assert vm2.run(["test", "-e", "/etc/of-vm1"], check=False).returncode == 1
