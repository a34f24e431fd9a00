# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.hosts import rootfs
from support.ready_hooks.printed_play import entries, printed_play
from support.ready_hooks.workload_host import WorkloadHost
from support.wait import wait_until

HOOK = "systemd-units"
UNIT = "[Service]\nExecStart=sleep infinity\n"
# notes SIGTERM and waits for a file
SLOW = (
    '[Service]\nExecStart=/bin/sh -c \'trap "while [ ! -e /run/go ]; do sleep 0.05; done; exit 0" TERM; '
    "while :; do sleep 0.05; done'\n"
)
OPTIONS = {"units": ["first.service", "second.service"]}


@pytest.fixture
def host(workload_host: Callable[..., WorkloadHost]) -> Iterator[WorkloadHost]:
    """Two units that run."""
    host = workload_host("plain", rootfs.SUITE)
    host.shell("rm -f /run/go")
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
def test_recover_starts_only_the_units_that_prepare_stopped(host: WorkloadHost) -> None:
    host.run("systemctl", "stop", "second.service")
    for event in ("E1", "E2"):
        assert host.hook(HOOK, "prepare", OPTIONS, event={"ID": event}).returncode == 0
    assert states(host) == ["inactive", "inactive"]
    assert host.record(HOOK) == {"units": ["first.service"]}
    for _again in range(2):
        assert host.hook(HOOK, "recover", OPTIONS).returncode == 0
    assert states(host) == ["active", "inactive"]
    assert host.record(HOOK) is None


@pytest.mark.all
def test_wrong_name_is_found_by_check_and_stops_nothing(host: WorkloadHost) -> None:
    wrong = {"units": ["first", "secnod"]}
    found = host.hook(HOOK, "check", wrong)
    assert (found.returncode, "secnod.service" in found.stderr) == (1, True)
    assert "first.service: active" in found.stdout
    result = host.hook(HOOK, "prepare", wrong)
    assert (result.returncode, "secnod.service" in result.stderr) == (1, True)
    result = host.hook(HOOK, "prepare", {**OPTIONS, "dry_run": True})
    assert result.stdout == "would stop first.service\nwould stop second.service\n"
    assert (states(host), host.record(HOOK)) == (["active", "active"], None)


@pytest.fixture
def killed(host: WorkloadHost) -> WorkloadHost:
    """The host, on which the hook was killed while it waited for the stop of the second unit."""
    write(host, "second.service", SLOW)
    host.run("systemctl", "daemon-reload")
    host.run("systemctl", "restart", "second.service")
    host.start_hook(HOOK, "prepare", OPTIONS)
    wait_until(lambda: states(host, "second.service") == ["deactivating"], "the unit is being stopped")
    host.kill("hook")
    return host


def test_recover_after_a_kill_starts_what_was_stopped(killed: WorkloadHost) -> None:
    assert killed.record(HOOK) == {"units": OPTIONS["units"]}
    killed.shell("touch /run/go")
    assert killed.hook(HOOK, "recover", OPTIONS).returncode == 0
    assert states(killed) == ["active", "active"]


@pytest.mark.all
def test_prepare_after_a_kill_waits_for_the_stop_that_has_begun(killed: WorkloadHost) -> None:
    assert "second.service: it did not stop" in killed.hook(HOOK, "prepare", {**OPTIONS, "stop_timeout": 1}).stderr
    killed.shell("touch /run/go")
    assert killed.hook(HOOK, "prepare", OPTIONS).returncode == 0
    assert states(killed) == ["inactive", "inactive"]


@pytest.mark.all
def test_printed_play_stops_the_units_for_an_event(
    workload_host: Callable[[str], WorkloadHost], tmp_path: Path
) -> None:
    host = workload_host("web1")
    (entry,) = entries("systemd-units")
    units = entry["units"]
    write(host, "backup.timer", "[Timer]\nOnCalendar=2099-01-01\n")
    for service in ("backup.service", "worker@.service", "queue.service"):
        write(host, service, UNIT)
    start(host, *units)
    with printed_play("systemd-units", tmp_path, host) as play:
        play.apply()
        play.prepare("Reboot")
        assert states(host, *units) == ["inactive"] * len(units)
        play.recover()
        assert states(host, *units) == ["active"] * len(units)
        assert host.record("systemd-units") is None


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
