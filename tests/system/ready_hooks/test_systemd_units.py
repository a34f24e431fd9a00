# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest

from support.hosts import rootfs
from support.ready_hooks.workload_host import LIBRARY, WorkloadHost
from support.wait import wait_until

HOOK = "systemd-units"
UNIT = "[Service]\nExecStart=sleep infinity\n"
# notes SIGTERM and waits for a file
SLOW = (
    '[Service]\nExecStart=/bin/sh -c \'trap "while [ ! -e /run/go ]; do sleep 0.05; done; exit 0" TERM; '
    "while :; do sleep 0.05; done'\n"
)
OPTIONS = {"units": ["first.service", "second.service"]}
LOG = "/var/log/order"


@pytest.fixture
def host(workload_host: Callable[..., WorkloadHost]) -> Iterator[WorkloadHost]:
    """Two units that run."""
    host = workload_host("plain", rootfs.SUITE)
    host.shell(f"rm -f {LOG} /run/go")
    for unit in OPTIONS["units"]:
        write(host, unit, UNIT)
    start(host, *OPTIONS["units"])
    yield host
    host.shell(
        "touch /run/go; cd /etc/systemd/system; "
        "for unit in *.service *.socket *@.service; do "
        '[ -f "$unit" ] && [ ! -L "$unit" ] || continue; '
        'systemctl stop "$unit" 2>/dev/null || true; systemctl disable --quiet "$unit" 2>/dev/null || true; '
        'rm -f "$unit"; done; '
        "rm -f /run/systemd/system/*.service; rm -rf /var/lib/azure-scheduled-events; "
        "systemctl daemon-reload; systemctl reset-failed"
    )


def write(host: WorkloadHost, unit: str, content: str) -> None:
    host.write(f"/etc/systemd/system/{unit}", content)


def start(host: WorkloadHost, *units: str) -> None:
    host.run("systemctl", "daemon-reload")
    host.run("systemctl", "start", *units)


def states(host: WorkloadHost, *units: str) -> list[str]:
    return [host.run("systemctl", "is-active", unit, check=False).stdout.strip() for unit in units or OPTIONS["units"]]


def ordered(host: WorkloadHost, *units: str) -> None:
    """Replace the units by some that write their starts and stops to a log."""
    for unit in units:
        note = f"/bin/sh -c 'echo %s {unit} >>{LOG}'"
        write(host, unit, f"{UNIT}ExecStartPost={note % 'start'}\nExecStop={note % 'stop'}\n")
    host.run("systemctl", "daemon-reload")
    host.run("systemctl", "restart", *units)
    host.shell(f"rm -f {LOG}")


def log(host: WorkloadHost) -> list[str]:
    return host.shell(f"cat {LOG}").splitlines()


@pytest.mark.all
def test_recover_starts_only_the_units_that_prepare_stopped(host: WorkloadHost) -> None:
    host.run("systemctl", "stop", "second.service")
    assert host.hook(HOOK, "prepare", OPTIONS).returncode == 0
    assert states(host) == ["inactive", "inactive"]
    assert host.record(HOOK) == {"units": ["first.service"]}
    assert host.hook(HOOK, "recover", OPTIONS).returncode == 0
    assert states(host) == ["active", "inactive"]
    assert host.record(HOOK) is None


@pytest.mark.all
def test_units_stop_in_order_and_start_in_reverse_order(host: WorkloadHost) -> None:
    ordered(host, *OPTIONS["units"])
    for verb in ("prepare", "recover"):
        assert host.hook(HOOK, verb, OPTIONS).returncode == 0
    assert log(host) == ["stop first.service", "stop second.service", "start second.service", "start first.service"]


@pytest.mark.all
def test_prepare_again_before_recovery_keeps_the_record(host: WorkloadHost) -> None:
    for event in ("E1", "E2"):
        assert host.hook(HOOK, "prepare", OPTIONS, event={"ID": event}).returncode == 0
    assert host.record(HOOK) == {"units": OPTIONS["units"]}
    for _attempt in range(2):
        assert host.hook(HOOK, "recover", OPTIONS).returncode == 0
    assert states(host) == ["active", "active"]


@pytest.mark.all
def test_dry_run_stops_nothing(host: WorkloadHost) -> None:
    result = host.hook(HOOK, "prepare", {**OPTIONS, "dry_run": True})
    assert result.stdout == "would stop first.service\nwould stop second.service\n"
    assert (states(host), host.record(HOOK)) == (["active", "active"], None)


@pytest.mark.all
def test_prepare_with_a_wrong_name_stops_nothing(host: WorkloadHost) -> None:
    result = host.hook(HOOK, "prepare", {"units": ["first", "secnod"]})
    assert (result.returncode, "secnod.service" in result.stderr) == (1, True)
    assert (states(host), host.record(HOOK)) == (["active", "active"], None)


@pytest.mark.all
def test_check_names_a_unit_that_does_not_exist(host: WorkloadHost) -> None:
    found = host.hook(HOOK, "check", {"units": ["frist.service", "first.service"]})
    assert (found.returncode, "frist.service" in found.stderr) == (1, True)
    assert "first.service: active" in found.stdout


@pytest.mark.all
def test_template_is_a_usage_error_and_its_instance_is_stopped(host: WorkloadHost) -> None:
    write(host, "app@.service", UNIT)
    start(host, "app@one.service", "app@two.service")
    assert host.hook(HOOK, "check", {"units": ["app@.service"]}).returncode == 2
    options = {"units": ["app@one"]}
    assert host.hook(HOOK, "prepare", options).returncode == 0
    assert states(host, "app@one", "app@two") == ["inactive", "active"]
    assert host.hook(HOOK, "recover", options).returncode == 0
    assert states(host, "app@one", "app@two") == ["active", "active"]
    host.run("systemctl", "stop", "app@one", "app@two")


@pytest.mark.all
def test_masked_unit_that_runs_is_refused(host: WorkloadHost) -> None:
    host.shell("systemctl mask --runtime --force first.service; rm /etc/systemd/system/first.service")
    host.run("systemctl", "daemon-reload")
    for verb in ("check", "prepare"):
        result = host.hook(HOOK, verb, OPTIONS)
        assert (result.returncode, "masked" in result.stderr) == (1, True)
    assert states(host) == ["active", "active"]
    host.run("systemctl", "stop", "first.service")
    assert host.hook(HOOK, "prepare", OPTIONS).returncode == 0
    assert host.record(HOOK) == {"units": ["second.service"]}
    host.run("systemctl", "unmask", "--runtime", "first.service")


@pytest.mark.all
def test_transient_unit_is_refused(host: WorkloadHost) -> None:
    host.run("systemd-run", "--unit=passing", "sleep", "infinity")
    for verb in ("check", "prepare"):
        assert host.hook(HOOK, verb, {"units": ["first", "passing"]}).returncode == 1
    assert states(host, "first", "passing") == ["active", "active"]
    host.run("systemctl", "stop", "passing")


SOCKET = "[Socket]\nListenStream=/run/served\nAccept=no\n"


@pytest.mark.all
def test_socket_before_its_service_stops_and_starts_both(host: WorkloadHost) -> None:
    write(host, "served.socket", SOCKET)
    write(host, "served.service", UNIT)
    start(host, "served.socket", "served.service")
    found = host.hook(HOOK, "check", {"units": ["served"]})
    assert (found.returncode, "list served.socket before it" in found.stderr) == (0, True)
    options = {"units": ["served.socket", "served.service"]}
    assert host.hook(HOOK, "check", options).stderr == ""
    assert host.hook(HOOK, "prepare", options).returncode == 0
    assert states(host, *options["units"]) == ["inactive", "inactive"]
    assert host.hook(HOOK, "recover", options).returncode == 0
    assert states(host, *options["units"]) == ["active", "active"]


@pytest.mark.all
def test_unit_that_runs_again_after_its_stop_is_a_failure(host: WorkloadHost) -> None:
    write(host, "again.service", UNIT + "ExecStopPost=systemctl start --no-block back.service\n")
    write(
        host, "back.service", "[Unit]\nAfter=again.service\n[Service]\nType=oneshot\nExecStart=systemctl start again\n"
    )
    start(host, "again.service")
    options = {"units": ["again.service", "second.service"]}
    write(host, "second.service", UNIT + "ExecStop=/bin/sh -c 'until systemctl is-active again; do sleep 0.05; done'\n")
    host.run("systemctl", "daemon-reload")
    result = host.hook(HOOK, "prepare", options)
    assert (result.returncode, "again.service: it runs again" in result.stderr) == (1, True)
    assert host.record(HOOK) == options
    write(host, "again.service", UNIT)
    host.run("systemctl", "daemon-reload")


@pytest.mark.all
def test_units_that_stop_with_a_listed_one_start_again(host: WorkloadHost) -> None:
    write(host, "app.service", "[Unit]\nRequires=first.service\nAfter=first.service\n" + UNIT)
    write(host, "front.service", "[Unit]\nBindsTo=app.service\nAfter=app.service\n" + UNIT)
    start(host, "app.service", "front.service")
    options = {"units": ["first.service"]}
    assert "app.service" in host.hook(HOOK, "check", options).stdout
    assert host.hook(HOOK, "prepare", options).returncode == 0
    assert host.record(HOOK) == {"units": ["front.service", "app.service", "first.service"]}
    assert host.hook(HOOK, "recover", options).returncode == 0
    assert states(host, "first", "app", "front") == ["active", "active", "active"]


@pytest.mark.all
def test_unit_that_does_not_stop_in_time_is_named_and_recover_starts_it(host: WorkloadHost) -> None:
    write(host, "second.service", SLOW)
    host.run("systemctl", "daemon-reload")
    host.run("systemctl", "restart", "second.service")
    options = {**OPTIONS, "stop_timeout": 1}
    assert "TimeoutStopSec" in host.hook(HOOK, "check", options).stderr
    result = host.hook(HOOK, "prepare", options)
    assert result.returncode == 1
    assert "second.service: it did not stop within 1 s" in result.stderr
    host.shell("touch /run/go")
    assert host.hook(HOOK, "recover", options).returncode == 0
    assert states(host) == ["active", "active"]


@pytest.mark.all
def test_hook_with_too_little_time_ends_itself_and_recover_undoes(host: WorkloadHost) -> None:
    write(host, "first.service", SLOW)
    host.run("systemctl", "daemon-reload")
    host.run("systemctl", "restart", "first.service")
    result = host.hook(HOOK, "prepare", OPTIONS, seconds=2)
    assert (result.returncode, "did not stop within 2 s" in result.stderr) == (1, True)
    assert states(host)[1] == "active"
    host.shell("touch /run/go")
    assert host.hook(HOOK, "recover", OPTIONS).returncode == 0
    assert states(host) == ["active", "active"]


def kill_during_the_stop(host: WorkloadHost, unit: str) -> None:
    """Kill the hook with SIGKILL while it waits for the stop of the unit."""
    command = json.dumps(OPTIONS)
    host.run("systemd-run", "--unit=hook", "--collect", f"{LIBRARY}/{HOOK}", "prepare", "--json", command)
    wait_until(lambda: states(host, unit) == ["deactivating"], f"{unit} is being stopped")
    host.run("systemctl", "kill", "--signal=KILL", "hook.service")
    wait_until(lambda: states(host, "hook") != ["active"], "the hook has ended")


def test_recover_after_a_kill_starts_what_was_stopped(host: WorkloadHost) -> None:
    write(host, "second.service", SLOW)
    host.run("systemctl", "daemon-reload")
    host.run("systemctl", "restart", "second.service")
    kill_during_the_stop(host, "second.service")
    assert host.record(HOOK) == {"units": OPTIONS["units"]}
    host.shell("touch /run/go")
    assert host.hook(HOOK, "recover", OPTIONS).returncode == 0
    assert states(host) == ["active", "active"]


@pytest.mark.all
def test_prepare_after_a_kill_waits_for_the_stop_that_has_begun(host: WorkloadHost) -> None:
    write(host, "second.service", SLOW)
    host.run("systemctl", "daemon-reload")
    host.run("systemctl", "restart", "second.service")
    kill_during_the_stop(host, "second.service")
    assert "second.service: it did not stop" in host.hook(HOOK, "prepare", {**OPTIONS, "stop_timeout": 1}).stderr
    host.shell("touch /run/go")
    assert host.hook(HOOK, "prepare", OPTIONS).returncode == 0
    assert states(host) == ["inactive", "inactive"]


@pytest.mark.all
def test_recover_after_a_reboot_starts_what_does_not_start_at_boot(host: WorkloadHost) -> None:
    write(host, "second.service", UNIT + "[Install]\nWantedBy=multi-user.target\n")
    host.run("systemctl", "daemon-reload")
    host.run("systemctl", "enable", "second.service")
    assert host.hook(HOOK, "prepare", OPTIONS).returncode == 0
    host.host.reboot()
    assert states(host) == ["inactive", "active"]
    # the daemon repeats the preparation if the event has not started
    assert host.hook(HOOK, "prepare", OPTIONS).returncode == 0
    assert states(host) == ["inactive", "inactive"]
    host.host.reboot()
    assert host.hook(HOOK, "recover", OPTIONS).returncode == 0
    assert states(host) == ["active", "active"]


@pytest.mark.all
def test_recover_of_a_unit_that_does_not_start_starts_the_others_and_keeps_the_record(host: WorkloadHost) -> None:
    assert host.hook(HOOK, "prepare", OPTIONS).returncode == 0
    write(host, "second.service", "[Service]\nType=oneshot\nExecStart=test -e /run/go\n")
    host.run("systemctl", "daemon-reload")
    result = host.hook(HOOK, "recover", OPTIONS)
    assert (result.returncode, "second.service: " in result.stderr) == (1, True)
    assert states(host, "first.service") == ["active"]
    assert host.record(HOOK) == {"units": ["second.service"]}
    host.shell("touch /run/go")
    assert host.hook(HOOK, "recover", OPTIONS).returncode == 0
    assert host.record(HOOK) is None


@pytest.mark.all
def test_recover_starts_a_unit_that_has_failed_too_often(host: WorkloadHost) -> None:
    limit = "[Unit]\nStartLimitIntervalSec=1h\nStartLimitBurst=1\n"
    assert host.hook(HOOK, "prepare", {"units": ["first"]}).returncode == 0
    write(host, "first.service", limit + "[Service]\nExecStart=/bin/false\n")
    host.run("systemctl", "daemon-reload")
    host.run("systemctl", "start", "first.service", check=False)
    wait_until(lambda: states(host, "first") == ["failed"])
    write(host, "first.service", limit + UNIT)
    host.run("systemctl", "daemon-reload")
    assert host.hook(HOOK, "recover", {"units": ["first"]}).returncode == 0
    assert states(host, "first") == ["active"]


@pytest.mark.all
def test_recover_on_a_full_disk_starts_all_units(host: WorkloadHost) -> None:
    options = {**OPTIONS, "state_directory": "/run/small/records"}
    host.shell("mkdir -m 0700 /run/small; mount -t tmpfs -o size=64k,mode=0700 small /run/small")
    try:
        assert host.hook(HOOK, "prepare", options).returncode == 0
        host.shell("dd if=/dev/zero of=/run/small/filler bs=1k 2>/dev/null || true")
        result = host.hook(HOOK, "recover", options)
        assert (result.returncode, "No space left" in result.stderr) == (0, True), result.stderr
        assert states(host) == ["active", "active"]
        host.shell("dd if=/dev/zero of=/run/small/more bs=1k 2>/dev/null || true")
        refused = host.hook(HOOK, "prepare", options)
        assert (refused.returncode, "the change that it describes was not made" in refused.stderr) == (1, True)
        assert states(host) == ["active", "active"]
    finally:
        host.shell("umount /run/small; rmdir /run/small")
