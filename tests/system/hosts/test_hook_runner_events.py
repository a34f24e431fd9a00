# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Events on a real host, from the announcement over an interruption or a failure of the daemon to the recovery.

The simulated clock moves only by the tests. One race remains: an interruption begins with the start
of its event; therefore a hook of the stages `started` and `emergency` may end before the host goes
down, or run again after it. The last test installs the configuration of the role again, for the next file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from support.hosts.host import EPHEMERAL, Host
from support.hosts.role_host import HOOKS, LIFE, START, Azure, RoleHost
from support.wait import wait_until

# the host of test_hook_runner_role.py
VM = "role"
LIBRARY = "/usr/local/lib/azure-scheduled-events"
# systemd ends a daemon without a watchdog message for this time, which is four times the interval of
# these messages
WATCHED = ("WatchdogSec=20", "TimeoutAbortSec=1")
# seconds; longer than any test
ENDLESS = 600


def end_event(site: RoleHost, azure: Azure) -> None:
    """Let the event end and the host recover."""
    azure.advance(LIFE)
    site.wait_for("ended", "recover")
    wait_until(site.is_idle, "the event is closed", site.log)


def finish_event(site: RoleHost, azure: Azure, event: str) -> None:
    """Let the preparation and the event end; each stage has then run once."""
    site.release("prepare")
    azure.wait_for_approval(event, site)
    azure.advance(START)
    site.wait_for("ended", "started")
    end_event(site, azure)
    assert [(site.began(stage), site.ended(stage)) for stage in ("prepare", "started", "recover")] == [(1, 1)] * 3, (
        site.markers()
    )
    assert azure.approvals(event) == 1


def hook_process(site: RoleHost) -> str:
    """Return the PID of the hook. A fork of it has the same name until it executes another program."""
    return site.host.run(["pgrep", "--oldest", "--full", "hooks.d/prepare/10-mark"]).stdout


@contextmanager
def hook_survives(site: RoleHost) -> Iterator[None]:
    """The daemon ends in this block, and another one has the same process of the hook."""
    process, hook = site.process(), hook_process(site)
    yield
    wait_until(lambda: site.process() not in ("0", process) and site.watches(), "another daemon polls", site.log)
    assert hook_process(site) == hook


def test_freeze(site: RoleHost, azure: Azure) -> None:
    boot = site.host.boot_id
    event = azure.announce("Freeze", VM, duration=9)
    azure.wait_for_approval(event, site)
    assert (site.began("prepare"), site.ended("prepare")) == (1, 1)
    azure.advance(START)
    azure.wait_for_impact(VM, "freeze")
    wait_until(lambda: site.host.is_frozen, "it is frozen")
    azure.advance(9)
    azure.wait_for_impact(VM, "thaw")
    site.wait_for("ended", "started")
    end_event(site, azure)
    assert [(mark.what, mark.stage, mark.outcome, mark.event_id, mark.boot_id) for mark in site.markers()] == [
        (what, stage, outcome, event, boot)
        for stage, outcome in (("prepare", "-"), ("started", "-"), ("recover", "completed"))
        for what in ("began", "ended")
    ]
    assert azure.approvals(event) == 1


def test_reboot(site: RoleHost, azure: Azure) -> None:
    before = site.host.boot_id
    event = azure.announce("Reboot", VM)
    azure.interrupt(event, site, "reboot")
    end_event(site, azure)
    after = site.host.boot_id
    assert before != after
    assert [mark.boot_id for mark in site.markers("ended", "prepare")] == [before] and site.began("prepare") == 1
    assert [(mark.boot_id, mark.outcome) for mark in site.markers("ended", "recover")] == [
        (after, "completed")
    ] and site.began("recover") == 1
    assert azure.approvals(event) == 1


@pytest.mark.all
def test_redeploy(site: RoleHost, azure: Azure) -> None:
    site.host.run(["touch", f"{EPHEMERAL}/cache"])
    event = azure.announce("Redeploy", VM)
    azure.interrupt(event, site, "redeploy")
    end_event(site, azure)
    assert site.host.run(["test", "-e", f"{EPHEMERAL}/cache"], check=False).returncode == 1
    assert (site.began("prepare"), site.began("recover"), azure.approvals(event)) == (1, 1, 1)


@pytest.mark.all
def test_hardware_failure(site: RoleHost, azure: Azure) -> None:
    azure.simulator.post("/fail", {"vm": VM})
    azure.wait_for_impact(VM, "reboot")
    site.wait_for("ended", "emergency")
    end_event(site, azure)
    assert (site.began("prepare"), site.began("started"), site.began("recover")) == (0, 0, 1)


@pytest.mark.all
@pytest.mark.parametrize("way", [Host.reboot, Host.crash], ids=["reboot", "power cut"])
def test_host_goes_down_while_it_prepares(site: RoleHost, azure: Azure, way: Callable[[Host], None]) -> None:
    event = azure.announce_and_hold(site, "Reboot")
    way(site.host)
    if not site.host.is_up:
        site.host.boot()
    site.wait_for("began", "prepare", 2)
    assert azure.approvals(event) == 0
    site.release("prepare")
    azure.interrupt(event, site, "reboot")
    end_event(site, azure)
    assert (site.began("prepare"), site.ended("prepare")) == (2, 1), site.log()
    assert (site.began("recover"), azure.approvals(event)) == (1, 1), site.log()


@pytest.mark.all
def test_full_run_delays_a_hook_which_then_runs_as_a_child(site: RoleHost, azure: Azure) -> None:
    site.configure(hooks={"prepare/10-mark": {"timeout": 20}})
    # a child has the restrictions of the daemon, and the hook writes there
    site.write_drop_in("ReadWritePaths=/var/lib")
    with site.host.full_run():
        event = azure.announce_and_hold(site)
        units = ["systemctl", "list-units", "--plain", "--no-legend", "azure-scheduled-events-hook-*"]
        assert site.host.run(units).stdout == ""
    site.configure()
    finish_event(site, azure, event)
    site.write_drop_in()


@pytest.mark.all
def test_watchdog_is_pinged_while_imds_fails_and_ends_a_hanging_daemon(site: RoleHost, azure: Azure) -> None:
    site.configure(timeout=ENDLESS)
    site.write_drop_in(*WATCHED)
    event = azure.announce_and_hold(site)
    with hook_survives(site):
        process = site.process()
        azure.inject_fault("hang")
        for _turn in range(2):
            pinged = site.unit("WatchdogTimestampMonotonic")
            wait_until(lambda: site.unit("WatchdogTimestampMonotonic") != pinged, "it is pinged", site.log)  # pylint: disable=cell-var-from-loop
        assert site.process() == process
        azure.simulator.delete("/faults")
        site.host.run(["kill", "-STOP", process])
    finish_event(site, azure, event)
    site.configure()
    site.write_drop_in()


@pytest.mark.all
def test_role_removes_no_hooks_of_a_prepared_host(site: RoleHost, azure: Azure) -> None:
    event = azure.announce_and_hold(site)
    others = [hook for hook in HOOKS if hook["stage"] != "recover"]
    for variables in ({"hooks": others, "purge_hooks": True}, {"state": "absent"}):
        refused = site.apply(**variables)
        assert refused.status != 0 and "maintenance.json" in refused.text, refused.text
    wait_until(site.watches, "the daemon polls again", site.log)
    finish_event(site, azure, event)


@pytest.mark.all
def test_upgrade_in_the_middle_of_an_event(site: RoleHost, azure: Azure) -> None:
    event = azure.announce_and_hold(site)
    with hook_survives(site):
        site.host.run(["sh", "-c", f"for each in {LIBRARY}/hook_runner/*.py; do echo '# older' >>$each; done"])
        upgraded = site.must_apply()
        assert "Restart the hook runner" in upgraded.changed_tasks, upgraded.text
    finish_event(site, azure, event)
