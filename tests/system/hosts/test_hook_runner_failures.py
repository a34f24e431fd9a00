# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Failures on a real host: of the daemon, its disk and IMDS, and upgrades during an event.

Clock changes are in the daemon's own tests, because all hosts share the clock of the machine.
"""

from __future__ import annotations

import json

import pytest

from support.hosts.role_host import APPROVE_WHEN_PREPARED, SERVICE, Azure, RoleHost
from support.wait import wait_until

pytestmark = pytest.mark.all

VM = "failures"
START, LIFE = 2, 700
LIBRARY = "/usr/local/lib/azure-scheduled-events"
STATE = "/var/lib/azure-scheduled-events"
# systemd ends a daemon without a watchdog message for this time, which is four times the interval of
# these messages
WATCHED = ("WatchdogSec=20", "TimeoutAbortSec=1")
# seconds; longer than any test
ENDLESS = 600
# more than the daemon needs at its start, and quickly filled
SMALL = "4m"


def finish_event(site: RoleHost, azure: Azure, event: str) -> None:
    """Let the preparation and the event end; each stage has then run once."""
    site.release("prepare")
    azure.wait_for_approval(event, site)
    azure.advance(START)
    site.wait_for("ended", "started")
    azure.advance(LIFE)
    site.wait_for("ended", "recover")
    wait_until(site.is_idle, "the event is closed", site.log)
    assert [(site.began(stage), site.ended(stage)) for stage in ("prepare", "started", "recover")] == [(1, 1)] * 3, (
        site.markers()
    )
    assert azure.approvals(event) == 1


def hook_process(site: RoleHost) -> str:
    """Return the PID of the hook. A fork of it has the same name until it executes another program."""
    return site.host.run(["pgrep", "--oldest", "--full", "hooks.d/prepare/10-mark"]).stdout


@pytest.mark.parametrize(
    "how",
    [
        ["systemctl", "kill", "--signal=KILL", "--kill-who=main", SERVICE],
        ["systemctl", "restart", SERVICE],
    ],
    ids=["killed", "restarted"],
)
def test_hook_outlives_the_daemon_and_is_counted_once(site: RoleHost, azure: Azure, how: list[str]) -> None:
    site.hold("prepare")
    event = azure.announce("Freeze", VM, duration=0)
    site.wait_for("began", "prepare")
    process, hook = site.process(), hook_process(site)
    site.host.run(how)
    wait_until(lambda: site.process() not in ("0", process) and site.watches(), "another daemon polls", site.log)
    assert hook_process(site) == hook
    finish_event(site, azure, event)


def test_hook_that_ends_while_no_daemon_runs_is_counted(site: RoleHost, azure: Azure) -> None:
    site.hold("prepare")
    event = azure.announce("Freeze", VM, duration=0)
    site.wait_for("began", "prepare")
    site.host.run(["systemctl", "stop", SERVICE])
    site.release("prepare")
    site.wait_for("ended", "prepare")
    site.host.run(["systemctl", "start", SERVICE])
    finish_event(site, azure, event)


def test_full_run_delays_a_hook_which_then_runs_as_a_child(site: RoleHost, azure: Azure) -> None:
    site.configure(hooks={"prepare/10-mark": {"timeout": 20}})
    # a child has the restrictions of the daemon, and the hook writes there
    site.write_drop_in("ReadWritePaths=/var/lib")
    site.host.run(["sh", "-c", "mount -o remount,size=$(df --output=used -B1 /run | tail -1) /run"])
    try:
        site.hold("prepare")
        event = azure.announce("Freeze", VM, duration=0)
        site.wait_for("began", "prepare")
        units = ["systemctl", "list-units", "--plain", "--no-legend", "azure-scheduled-events-hook-*"]
        assert site.host.run(units).stdout == ""
    finally:
        site.host.run(["mount", "-o", "remount,size=20%", "/run"])
        site.configure()
    finish_event(site, azure, event)
    site.write_drop_in()


def test_upgrade_in_the_middle_of_an_event(site: RoleHost, azure: Azure) -> None:
    site.hold("prepare")
    event = azure.announce("Freeze", VM, duration=0)
    site.wait_for("began", "prepare")
    process, hook = site.process(), hook_process(site)
    site.host.run(["sh", "-c", f"for each in {LIBRARY}/hook_runner/*.py; do echo '# older' >>$each; done"])
    upgraded = site.must_apply()
    assert "Restart the hook runner" in upgraded.changed_tasks, upgraded.text
    wait_until(lambda: site.process() not in ("0", process) and site.watches(), "the new daemon polls", site.log)
    assert hook_process(site) == hook
    finish_event(site, azure, event)


def test_reload_lets_hooks_run(site: RoleHost, azure: Azure) -> None:
    site.hold("prepare")
    event = azure.announce("Freeze", VM, duration=0)
    site.wait_for("began", "prepare")
    process, hook = site.process(), hook_process(site)
    site.configure(policy={**APPROVE_WHEN_PREPARED, "name": "another name"})
    wait_until(lambda: site.status().get("policy") == "another name", "the daemon reads the policy", site.log)
    assert (site.process(), hook_process(site)) == (process, hook)
    finish_event(site, azure, event)
    site.configure()


def test_watchdog_is_pinged_while_imds_fails_and_ends_a_hanging_daemon(site: RoleHost, azure: Azure) -> None:
    site.configure(timeout=ENDLESS)
    site.write_drop_in(*WATCHED)
    site.hold("prepare")
    event = azure.announce("Freeze", VM, duration=0)
    site.wait_for("began", "prepare")
    process, hook = site.process(), hook_process(site)
    azure.inject_fault("hang")
    for _turn in range(2):
        pinged = site.unit("WatchdogTimestampMonotonic")
        wait_until(lambda: site.unit("WatchdogTimestampMonotonic") != pinged, "it is pinged", site.log)  # pylint: disable=cell-var-from-loop
    assert site.process() == process
    azure.simulator.delete("/faults")
    site.host.run(["kill", "-STOP", process])
    wait_until(lambda: site.process() not in ("0", process) and site.watches(), "systemd starts another one", site.log)
    assert hook_process(site) == hook
    finish_event(site, azure, event)
    site.configure()
    site.write_drop_in()


def test_stop_does_not_wait_for_a_request_that_hangs(site: RoleHost, azure: Azure) -> None:
    site.configure(timeout=ENDLESS)
    site.host.run(["systemctl", "restart", SERVICE])
    azure.inject_fault("hang")
    site.host.run(["systemctl", "stop", SERVICE])
    # one that does not stop by itself is killed, and then this is "timeout"
    assert site.unit("Result") == "success"
    azure.simulator.delete("/faults")
    site.configure(reload=False)
    site.host.run(["systemctl", "start", SERVICE])


def test_ten_minutes_of_imds_errors_end_no_event(site: RoleHost, azure: Azure) -> None:
    event = azure.announce("Reboot", VM, hold="1h", notice="1h", duration=0)
    azure.wait_for_approval(event, site)
    azure.simulator.post("/faults", {"kind": "unavailable"})
    wait_until(lambda: not site.watches(), "the poll fails", site.log)
    for kind in ("empty", "not-found"):
        azure.advance(300)
        azure.simulator.delete("/faults")
        azure.simulator.post("/faults", {"kind": kind})
        before = azure.polls()
        wait_until(lambda: azure.polls() > before, "the daemon polls again", site.log)  # pylint: disable=cell-var-from-loop
    assert site.status()["imds"]["ok"] is False
    assert site.ask("status").returncode == 1
    assert [mark.stage for mark in site.markers()] == ["prepare", "prepare"]
    azure.simulator.delete("/faults")
    wait_until(site.watches, "it polls successfully again", site.log)
    assert site.sees("approval", "accepted")
    assert [mark.stage for mark in site.markers()] == ["prepare", "prepare"]
    azure.simulator.post(f"/events/{event}/approve", {"as": "other-tenants"})
    finish_event(site, azure, event)


def test_full_disk_stops_no_hook_and_no_approval_is_lost(site: RoleHost, azure: Azure) -> None:
    site.host.run(["systemctl", "stop", SERVICE])
    site.host.run(["mount", "-t", "tmpfs", "-o", f"size={SMALL},mode=750", "small", STATE])
    site.host.run(["systemctl", "start", SERVICE])
    wait_until(site.watches, "the daemon polls", site.log)
    site.host.run(["dd", "if=/dev/zero", f"of={STATE}/others", "bs=64k"], check=False)
    event = azure.announce("Freeze", VM, duration=0)
    site.release("prepare")
    site.wait_for("ended", "prepare")
    wait_until(lambda: not site.status()["records"]["ok"], "the daemon cannot write", site.log)
    assert azure.approvals(event) == 0
    site.host.run(["rm", f"{STATE}/others"])
    finish_event(site, azure, event)
    site.reset()
    later = azure.announce("Freeze", VM, duration=0)
    finish_event(site, azure, later)
    assert site.status()["records"] == {"ok": True, "error": None, "since": None, "set_aside": []}
    history = json.dumps(site.history())
    assert event in history and later in history
    site.host.run(["systemctl", "stop", SERVICE])
    site.host.run(["umount", STATE])
    site.host.run(["systemctl", "start", SERVICE])
    wait_until(site.watches, "the daemon polls", site.log)


def test_record_that_cannot_be_read_is_set_aside_and_recovered(site: RoleHost) -> None:
    site.host.run(["systemctl", "stop", SERVICE])
    site.host.run(["sh", "-c", f"echo this is no record >{STATE}/hook-runner/maintenance.json"])
    site.host.run(["systemctl", "start", SERVICE])
    wait_until(site.watches, "the daemon polls", site.log)
    (aside,) = site.status()["records"]["set_aside"]
    assert site.host.run(["cat", f"{aside}/maintenance.json"]).stdout == "this is no record\n"
    wait_until(site.is_idle, "the host has recovered", site.log)


def test_approval_by_hand(site: RoleHost, azure: Azure) -> None:
    site.configure(policy="observe")
    wait_until(lambda: site.status().get("policy") == "observe", "the daemon reads the policy", site.log)
    event = azure.announce("Freeze", VM, duration=0)
    site.wait_for("ended", "prepare")
    assert azure.approvals(event) == 0
    approved = site.ask("approve", event)
    assert approved.returncode == 0, approved
    finish_event(site, azure, event)
    site.configure()
