# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from support.hosts import rootfs
from support.ready_hooks.workload_host import LIBRARY, WorkloadHost
from support.wait import wait_until

HOOK = "command"
FOLDER = "/var/tmp/command"
OPTIONS = {"prepare": f"echo prepared >>{FOLDER}/log", "recover": f"echo recovered >>{FOLDER}/log"}


@pytest.fixture
def host(workload_host: Callable[..., WorkloadHost]) -> Iterator[WorkloadHost]:
    host = workload_host("plain", rootfs.SUITE)
    host.shell(f"rm -rf {FOLDER} /var/lib/azure-scheduled-events; mkdir -m 1777 {FOLDER}")
    yield host
    host.shell(f"rm -rf {FOLDER} /var/lib/azure-scheduled-events")


def log(host: WorkloadHost) -> list[str]:
    return host.shell(f"cat {FOLDER}/log 2>/dev/null || true").splitlines()


def test_recover_runs_the_counterpart_once(host: WorkloadHost) -> None:
    for verb in ("recover", "prepare", "recover", "recover"):
        assert host.hook(HOOK, verb, OPTIONS).returncode == 0
    assert log(host) == ["prepared", "recovered"]
    assert host.record(HOOK) is None


@pytest.mark.all
def test_prepare_again_before_recovery_runs_again(host: WorkloadHost) -> None:
    for verb in ("prepare", "prepare", "recover"):
        assert host.hook(HOOK, verb, OPTIONS).returncode == 0
    assert log(host) == ["prepared", "prepared", "recovered"]


@pytest.mark.all
def test_recover_runs_after_a_failed_preparation(host: WorkloadHost) -> None:
    options = {**OPTIONS, "prepare": "exit 7"}
    result = host.hook(HOOK, "prepare", options)
    assert (result.returncode, "exit status 7" in result.stderr) == (1, True)
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
def test_recover_runs_after_the_hook_was_killed(host: WorkloadHost) -> None:
    options = {**OPTIONS, "prepare": f"echo begun >>{FOLDER}/log; sleep 600"}
    command = [f"{LIBRARY}/{HOOK}", "prepare", "--json", json.dumps(options)]
    host.run("systemd-run", "--unit=hook", "--collect", *command)
    wait_until(lambda: log(host) == ["begun"])
    host.run("systemctl", "kill", "--signal=KILL", "hook.service")
    wait_until(lambda: host.run("systemctl", "is-active", "hook", check=False).returncode != 0)
    assert host.hook(HOOK, "recover", options).returncode == 0
    assert log(host) == ["begun", "recovered"]


@pytest.mark.all
def test_recover_after_a_reboot_runs(host: WorkloadHost) -> None:
    assert host.hook(HOOK, "prepare", OPTIONS).returncode == 0
    host.host.reboot()
    assert host.hook(HOOK, "recover", OPTIONS).returncode == 0
    assert log(host) == ["prepared", "recovered"]


@pytest.mark.all
@pytest.mark.parametrize(("more", "seconds"), [({"prepare_timeout": "0.5s"}, 30), ({}, 1)])
def test_command_at_its_time_limit_ends_with_its_children(
    host: WorkloadHost, more: dict[str, Any], seconds: float
) -> None:
    result = host.hook(HOOK, "prepare", {**OPTIONS, "prepare": "sleep 611 & sleep 612", **more}, seconds=seconds)
    assert (result.returncode, "did not end within" in result.stderr) == (1, True)
    wait_until(lambda: host.run("pgrep", "-f", "^sleep 61[12]", check=False).returncode == 1, "they have ended")
    assert host.record(HOOK) == {"begun": True}


@pytest.mark.all
def test_process_in_the_background_continues(host: WorkloadHost) -> None:
    assert host.hook(HOOK, "prepare", {**OPTIONS, "prepare": "sleep 613 >/dev/null 2>&1 &"}).returncode == 0
    host.run("pkill", "-f", "^sleep 613")


@pytest.mark.all
def test_command_gets_event_input_user_and_environment(host: WorkloadHost) -> None:
    script = f'echo "$EVENT_TYPE $HOOK_SECONDS $WORD $NUMBER $(id -un) $(cat)" >>{FOLDER}/log'
    options = {"prepare": script, "user": "nobody", "environment": {"WORD": "two words", "NUMBER": 5}}
    command = host.hook_command(HOOK, "prepare", options, event={"TYPE": "Freeze"})
    host.run(*command, given='{"event_type": "Freeze"}')
    assert log(host) == ['Freeze 30 two words 5 nobody {"event_type": "Freeze"}']


@pytest.mark.all
def test_output_of_the_command_is_that_of_the_hook(host: WorkloadHost) -> None:
    result = host.hook(HOOK, "prepare", {"prepare": ["sh", "-c", "echo out; echo error >&2"]})
    assert (result.stdout.splitlines()[-1], result.stderr) == ("out", "error\n")


@pytest.mark.all
def test_dry_run_runs_nothing(host: WorkloadHost) -> None:
    result = host.hook(HOOK, "prepare", {**OPTIONS, "dry_run": True})
    assert (result.returncode, result.stdout.startswith("would run ")) == (0, True)
    assert (log(host), host.record(HOOK)) == ([], None)


@pytest.mark.all
def test_two_hooks_have_different_names(host: WorkloadHost) -> None:
    other = {**OPTIONS, "name": "other", "recover": f"echo other >>{FOLDER}/log"}
    for options in (OPTIONS, other):
        assert host.hook(HOOK, "prepare", options).returncode == 0
    assert host.hook(HOOK, "recover", other).returncode == 0
    assert log(host) == ["prepared", "prepared", "other"]
    assert host.record(HOOK) == {"begun": True}


@pytest.mark.all
@pytest.mark.parametrize(
    ("options", "subject"),
    [
        ({"recover": "true", "prepare": ["no-such-program", "x"]}, "no-such-program"),
        ({"recover": "true", "prepare": "if true; echo"}, "prepare"),
        ({**OPTIONS, "user": "no-such-user"}, "no-such-user"),
        ({**OPTIONS, "check": "echo reason >&2; exit 1"}, "reason"),
        ({**OPTIONS, "check": "sleep 600", "check_timeout": 0.2}, "did not end"),
        ({"check": "true"}, "prepare"),
    ],
)
def test_check_finds_what_would_fail(host: WorkloadHost, options: dict[str, Any], subject: str) -> None:
    result = host.hook(HOOK, "check", options)
    assert (result.returncode, subject in result.stderr) == (1, True)
    assert log(host) == []


@pytest.mark.all
def test_check_of_a_good_configuration_is_silent(host: WorkloadHost) -> None:
    result = host.hook(HOOK, "check", {**OPTIONS, "check": "echo ready", "user": "nobody"})
    assert (result.returncode, result.stdout, result.stderr) == (0, "command: check: ready\n", "")


@pytest.mark.all
def test_environment_with_a_wrong_name_is_a_usage_error(host: WorkloadHost) -> None:
    assert host.hook(HOOK, "check", {**OPTIONS, "environment": {"A B": "c"}}).returncode == 2
