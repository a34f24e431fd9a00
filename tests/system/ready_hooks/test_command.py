# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The ready hook command, and its page: an application that saves its state, and CRIU."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.hosts import rootfs
from support.hosts.lab import Lab
from support.ready_hooks.printed_play import entries, options_of, printed_play
from support.ready_hooks.workload_host import WorkloadHost
from support.wait import wait_until

HOOK = "command"
FOLDER = "/var/tmp/command"
OPTIONS = {"prepare": f"echo prepared >>{FOLDER}/log", "recover": f"echo recovered >>{FOLDER}/log"}


@pytest.fixture
def host(workload_host: Callable[..., WorkloadHost]) -> WorkloadHost:
    host = workload_host("plain", rootfs.SUITE)
    host.shell(f"rm -rf {FOLDER} /var/lib/azure-scheduled-events; mkdir -m 1777 {FOLDER}")
    return host


def log(host: WorkloadHost) -> list[str]:
    return host.shell(f"cat {FOLDER}/log 2>/dev/null || true").splitlines()


@pytest.mark.all
@pytest.mark.parametrize(
    ("preparation", "says"),
    [
        ({"prepare": "exit 7"}, "exit status 7"),
        ({"prepare": "sleep 600", "prepare_timeout": "0.5s"}, "did not end within"),
    ],
)
def test_recover_runs_after_a_failed_preparation(host: WorkloadHost, preparation: dict[str, str], says: str) -> None:
    options = {**OPTIONS, **preparation}
    result = host.hook(HOOK, "prepare", options)
    assert (result.returncode, says in result.stderr) == (1, True)
    assert host.hook(HOOK, "recover", options).returncode == 0
    assert log(host) == ["recovered"]


@pytest.mark.all
def test_recover_that_fails_runs_again(host: WorkloadHost) -> None:
    options = {**OPTIONS, "recover": f"echo tried >>{FOLDER}/log; test -e {FOLDER}/go"}
    assert host.hook(HOOK, "prepare", options).returncode == 0
    assert host.hook(HOOK, "recover", options).returncode == 1
    host.shell(f"touch {FOLDER}/go")
    assert host.hook(HOOK, "recover", options).returncode == 0
    assert log(host) == ["prepared", "tried", "tried"]


@pytest.mark.all
def test_command_gets_event_input_user_and_environment(host: WorkloadHost) -> None:
    script = f'echo "$EVENT_TYPE $HOOK_SECONDS $WORD $NUMBER $(id -un) $(cat)" >>{FOLDER}/log'
    options = {"prepare": script, "user": "nobody", "environment": {"WORD": "two words", "NUMBER": 5}}
    command = host.hook_command(HOOK, "prepare", options, event={"TYPE": "Freeze"})
    host.run(*command, given='{"event_type": "Freeze"}')
    assert log(host) == ['Freeze 30 two words 5 nobody {"event_type": "Freeze"}']


@pytest.mark.all
@pytest.mark.parametrize(
    ("options", "subject"),
    [
        ({"recover": "true", "prepare": ["no-such-program", "x"]}, "no-such-program"),
        ({"recover": "true", "prepare": "if true; echo"}, "prepare"),
        ({**OPTIONS, "user": "no-such-user"}, "no-such-user"),
        ({**OPTIONS, "check": "echo reason >&2; exit 1"}, "reason"),
        ({**OPTIONS, "check": "sleep 600", "check_timeout": 0.2}, "did not end"),
    ],
)
def test_check_finds_what_would_fail(host: WorkloadHost, options: dict[str, Any], subject: str) -> None:
    result = host.hook(HOOK, "check", options)
    assert (result.returncode, subject in result.stderr) == (1, True)
    assert log(host) == []


def test_recover_runs_the_counterpart_once(host: WorkloadHost) -> None:
    for verb in ("recover", "prepare", "prepare", "recover", "recover"):
        assert host.hook(HOOK, verb, OPTIONS).returncode == 0
    assert log(host) == ["prepared", "prepared", "recovered"]
    assert host.record(HOOK) is None


@pytest.mark.all
def test_recover_runs_after_the_hook_was_killed(host: WorkloadHost) -> None:
    options = {**OPTIONS, "prepare": f"echo begun >>{FOLDER}/log; sleep 600"}
    host.start_hook(HOOK, "prepare", options)
    wait_until(lambda: log(host) == ["begun"])
    host.kill("hook")
    assert host.hook(HOOK, "recover", options).returncode == 0
    assert log(host) == ["begun", "recovered"]


@pytest.mark.all
def test_check_and_dry_run_of_a_good_configuration_run_no_preparation(host: WorkloadHost) -> None:
    result = host.hook(HOOK, "check", {**OPTIONS, "check": "echo ready", "user": "nobody"})
    assert (result.returncode, result.stdout, result.stderr) == (0, "command: check: ready\n", "")
    result = host.hook(HOOK, "prepare", {**OPTIONS, "dry_run": True})
    assert (result.returncode, result.stdout.startswith("would run ")) == (0, True)
    assert (log(host), host.record(HOOK)) == ([], None)


SOLVER_FOLDER = "/var/tmp/solver"
# counts, and continues from a number
COUNTER = f"""\
import os, sys, time
number = int(sys.argv[1])
while True:
    number += 1
    with open("{SOLVER_FOLDER}/now.new", "w") as file:
        file.write(str(number))
    os.replace("{SOLVER_FOLDER}/now.new", "{SOLVER_FOLDER}/now")
    time.sleep(0.02)
"""
# the application of the first example
SOLVER = f"""\
#!/bin/sh
set -e
case $1 in
save) systemctl stop solver; cp {SOLVER_FOLDER}/now "$2.new"; mv "$2.new" "$2" ;;
load) echo "START=$(cat "$2")" >/run/solver.env; systemctl restart solver ;;
ready) test -w "$2" ;;
esac
"""
UNIT = f"""\
[Service]
Environment=START=0
EnvironmentFile=-/run/solver.env
ExecStart=python3 {SOLVER_FOLDER}/counter.py $START
"""


@pytest.fixture
def solver_host(workload_host: Callable[[str], WorkloadHost]) -> WorkloadHost:
    """A host with the application, which does not run yet."""
    host = workload_host("web1")
    host.write(f"{SOLVER_FOLDER}/counter.py", COUNTER)
    host.write("/usr/local/bin/solver", SOLVER, 0o755)
    host.write("/etc/systemd/system/solver.service", UNIT)
    host.shell("mkdir -p /var/lib/solver; systemctl daemon-reload")
    return host


@pytest.fixture
def criu_host(lab: Lab) -> WorkloadHost:
    """A host with a CRIU that works with new kernels."""
    host = WorkloadHost(lab.host("criu1", rootfs.CRIU_SUITE))
    host.write(f"{SOLVER_FOLDER}/counter.py", COUNTER)
    # systemd-nspawn mounts it read-only; a VM does not
    host.shell("mount -o remount,bind,rw /proc/sys")
    return host


def counted(host: WorkloadHost) -> int:
    file = host.host.file(f"{SOLVER_FOLDER}/now")
    return int(file.read_text(encoding="ascii")) if file.exists() else 0


@pytest.mark.all
def test_printed_play_saves_and_loads_the_application_over_a_reboot(solver_host: WorkloadHost, tmp_path: Path) -> None:
    host = solver_host
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


@pytest.mark.all
def test_printed_criu_commands_dump_and_restore_a_process_over_a_reboot(criu_host: WorkloadHost) -> None:
    host = criu_host
    options = options_of(entries("command")[1])
    # a process id that is free after the reboot
    host.shell(
        "echo 20000 >/proc/sys/kernel/ns_last_pid; "
        f"setsid python3 {SOLVER_FOLDER}/counter.py 0 </dev/null >/dev/null 2>&1 & echo $! >/run/solver.pid"
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
