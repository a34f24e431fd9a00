# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""docs/ready-hooks/command.md as printed: an application that saves its state, and CRIU."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.hosts import rootfs
from support.hosts.lab import Lab
from support.ready_hooks import page
from support.ready_hooks.printed_play import printed_play
from support.ready_hooks.workload_host import WorkloadHost
from support.wait import wait_until

pytestmark = pytest.mark.all

FOLDER = "/var/tmp/solver"
# counts, and continues from a number
COUNTER = f"""\
import os, sys, time
number = int(sys.argv[1])
while True:
    number += 1
    with open("{FOLDER}/now.new", "w") as file:
        file.write(str(number))
    os.replace("{FOLDER}/now.new", "{FOLDER}/now")
    time.sleep(0.02)
"""
# the application of the first example
SOLVER = f"""\
#!/bin/sh
set -e
case $1 in
save) systemctl stop solver; cp {FOLDER}/now "$2.new"; mv "$2.new" "$2" ;;
load) echo "START=$(cat "$2")" >/run/solver.env; systemctl restart solver ;;
ready) test -w "$2" ;;
esac
"""
UNIT = f"""\
[Service]
Environment=START=0
EnvironmentFile=-/run/solver.env
ExecStart=python3 {FOLDER}/counter.py $START
"""


@pytest.fixture
def host(workload_host: Callable[[str], WorkloadHost]) -> Iterator[WorkloadHost]:
    """A host with the application, which does not run yet."""
    host = workload_host("web1")
    host.write(f"{FOLDER}/counter.py", COUNTER)
    host.write("/usr/local/bin/solver", SOLVER, 0o755)
    host.write("/etc/systemd/system/solver.service", UNIT)
    host.shell("mkdir -p /var/lib/solver; systemctl daemon-reload")
    yield host
    host.shell(f"systemctl stop solver; rm -rf {FOLDER} /var/lib/solver /run/solver.*")


@pytest.fixture
def criu_host(lab: Lab) -> WorkloadHost:
    """A host with a CRIU that works with new kernels."""
    host = WorkloadHost(lab.host("criu1", rootfs.CRIU_SUITE))
    host.write(f"{FOLDER}/counter.py", COUNTER)
    # systemd-nspawn mounts it read-only; a VM does not
    host.shell("mount -o remount,bind,rw /proc/sys")
    return host


def counted(host: WorkloadHost) -> int:
    file = host.host.file(f"{FOLDER}/now")
    return int(file.read_text(encoding="ascii")) if file.exists() else 0


def test_printed_play_saves_and_loads_the_application_over_a_reboot(host: WorkloadHost, tmp_path: Path) -> None:
    host.run("systemctl", "start", "solver")
    with printed_play("command", tmp_path, host) as play:
        play.apply()
        wait_until(lambda: counted(host) > 20)
        play.prepare("Reboot")
        before = counted(host)
        host.host.reboot()
        assert counted(host) == before
        play.recover()
        wait_until(lambda: counted(host) > before)
        assert host.record("solver") is None


def test_printed_criu_commands_dump_and_restore_a_process_over_a_reboot(criu_host: WorkloadHost) -> None:
    host = criu_host
    options = page.options(page.entries("command")[1])
    # a process id that is free after the reboot
    host.shell(
        "echo 20000 >/proc/sys/kernel/ns_last_pid; "
        f"setsid python3 {FOLDER}/counter.py 0 </dev/null >/dev/null 2>&1 & echo $! >/run/solver.pid"
    )
    wait_until(lambda: counted(host) > 20)
    check = host.hook("command", "check", options)
    if check.returncode != 0:
        pytest.skip(f"CRIU does not work with this kernel: {check.stderr}")
    # the second time there is no process any more
    for _attempt in range(2):
        result = host.hook("command", "prepare", options)
        assert result.returncode == 0, result
    before = counted(host)
    assert host.run("pgrep", "-f", "counter.py", check=False).stdout == ""
    host.host.reboot()
    result = host.hook("command", "recover", options)
    assert result.returncode == 0, result
    wait_until(lambda: counted(host) > before)
    assert counted(host) < before + 10_000
    assert host.record("solver") is None
    host.shell("kill $(cat /run/solver.pid)")
