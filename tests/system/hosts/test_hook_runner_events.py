# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Events on a real host, from the announcement over a real interruption to the recovery.

The simulated clock moves only by the tests. One race remains: an interruption begins with the start
of its event; therefore a hook of the stages `started` and `emergency` may end before the host goes
down, or run again after it.
"""

from __future__ import annotations

import pytest

from support.hosts.host import EPHEMERAL, Host
from support.hosts.role_host import Azure, RoleHost
from support.wait import wait_until

# the host of test_hook_runner_role.py
VM = "role"
# seconds from an approval to the start, and from the start to the end of the event
START, LIFE = 2, 700


def end_event(site: RoleHost, azure: Azure) -> None:
    """Let the event end and the host recover."""
    azure.advance(LIFE)
    site.wait_for("ended", "recover")
    wait_until(site.is_idle, "the event is closed", site.log)


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
    azure.wait_for_approval(event, site)
    azure.advance(START)
    azure.wait_for_impact(VM, "reboot")
    site.wait_for("ended", "started")
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
    azure.wait_for_approval(event, site)
    azure.advance(START)
    azure.wait_for_impact(VM, "redeploy")
    site.wait_for("ended", "started")
    end_event(site, azure)
    assert site.host.run(["test", "-e", f"{EPHEMERAL}/cache"], check=False).returncode == 1
    assert (site.began("prepare"), site.began("recover"), azure.approvals(event)) == (1, 1, 1)


@pytest.mark.all
@pytest.mark.parametrize("kind", ["Preempt", "Terminate"])
def test_eviction(site: RoleHost, azure: Azure, kind: str) -> None:
    event = azure.announce(kind, VM)
    azure.wait_for_approval(event, site)
    assert site.ended("prepare") == 1
    azure.advance(START)
    azure.wait_for_impact(VM, "crash")
    assert not site.host.is_up
    azure.advance(LIFE)
    # the operator starts the VM again
    site.host.boot()
    site.wait_for("ended", "recover")
    assert (site.began("prepare"), site.began("recover"), azure.approvals(event)) == (1, 1, 1)


@pytest.mark.all
def test_hardware_failure(site: RoleHost, azure: Azure) -> None:
    azure.simulator.post("/fail", {"vm": VM})
    azure.wait_for_impact(VM, "reboot")
    site.wait_for("ended", "emergency")
    end_event(site, azure)
    assert (site.began("prepare"), site.began("started"), site.began("recover")) == (0, 0, 1)


@pytest.mark.all
def test_cancellation(site: RoleHost, azure: Azure) -> None:
    event = azure.announce("Reboot", VM, hold=True)
    azure.wait_for_approval(event, site)
    azure.simulator.post(f"/events/{event}/cancel")
    site.wait_for("ended", "recover")
    assert [(mark.stage, mark.outcome) for mark in site.markers("ended")] == [
        ("prepare", "-"),
        ("recover", "unknown"),
    ]


@pytest.mark.all
def test_preparation_that_takes_too_long_is_ended_by_the_start(site: RoleHost, azure: Azure) -> None:
    site.hold("prepare")
    event = azure.announce("Freeze", VM, duration=0)
    site.wait_for("began", "prepare")
    azure.advance(16 * 60)
    site.wait_for("ended", "started")
    assert site.ended("prepare") == 0
    site.release("prepare")
    end_event(site, azure)
    assert (site.began("prepare"), site.ended("prepare"), site.began("recover"), azure.approvals(event)) == (1, 0, 1, 0)


@pytest.mark.all
@pytest.mark.parametrize("way", [Host.reboot, Host.crash], ids=["reboot", "power cut"])
def test_host_goes_down_while_it_prepares(site: RoleHost, azure: Azure, way: object) -> None:
    site.hold("prepare")
    event = azure.announce("Reboot", VM)
    site.wait_for("began", "prepare")
    down_and_up(site.host, way)
    site.wait_for("began", "prepare", 2)
    assert azure.approvals(event) == 0
    site.release("prepare")
    azure.wait_for_approval(event, site)
    azure.advance(START)
    azure.wait_for_impact(VM, "reboot")
    site.wait_for("ended", "started")
    end_event(site, azure)
    assert (site.began("prepare"), site.ended("prepare"), site.began("recover"), azure.approvals(event)) == (
        2,
        1,
        1,
        1,
    ), site.log()


@pytest.mark.all
@pytest.mark.parametrize("way", [Host.reboot, Host.crash], ids=["reboot", "power cut"])
def test_host_goes_down_after_the_approval(site: RoleHost, azure: Azure, way: object) -> None:
    event = azure.announce("Freeze", VM, hold=True, duration=0)
    azure.wait_for_approval(event, site)
    wait_until(lambda: site.sees("approval", "accepted"), "the answer is in the record", site.log)
    down_and_up(site.host, way)
    wait_until(
        lambda: site.watches() and site.sees("approval", "accepted"), "the daemon remembers the approval", site.log
    )
    azure.simulator.post(f"/events/{event}/approve", {"as": "other-tenants"})
    azure.advance(START)
    site.wait_for("ended", "started")
    end_event(site, azure)
    assert (site.began("prepare"), site.began("started"), site.began("recover"), azure.approvals(event)) == (1, 1, 1, 1)


@pytest.mark.all
def test_power_cut_while_it_is_started(site: RoleHost, azure: Azure) -> None:
    site.hold("started")
    event = azure.announce("Freeze", VM, duration=0)
    azure.wait_for_approval(event, site)
    azure.advance(START)
    site.wait_for("began", "started")
    down_and_up(site.host, Host.crash)
    site.wait_for("began", "started", 2)
    site.release("started")
    site.wait_for("ended", "started")
    end_event(site, azure)
    assert (site.began("prepare"), site.ended("started"), site.began("recover"), azure.approvals(event)) == (1, 1, 1, 1)


@pytest.mark.all
def test_host_recovers_from_an_event_that_ends_while_it_is_down(site: RoleHost, azure: Azure) -> None:
    event = azure.announce("Reboot", VM, hold=True)
    azure.wait_for_approval(event, site)
    site.host.crash()
    azure.simulator.post(f"/events/{event}/cancel")
    azure.advance(60)
    site.host.boot()
    site.wait_for("ended", "recover")
    assert (site.began("prepare"), site.began("recover")) == (1, 1)


@pytest.mark.all
def test_history_shows_the_hooks_of_the_event(site: RoleHost, azure: Azure) -> None:
    event = azure.announce("Reboot", VM)
    azure.wait_for_approval(event, site)
    azure.advance(START)
    azure.wait_for_impact(VM, "reboot")
    site.wait_for("ended", "started")
    end_event(site, azure)
    shown = site.host.run(["azure-scheduled-events", "history", event]).stdout
    assert [
        word
        for word in ("Reboot", "prepare/10-mark", "started/10-mark", "recover/10-mark", "completed")
        if word not in shown
    ] == [], shown


def down_and_up(host: Host, way: object) -> None:
    if way is Host.reboot:
        host.reboot()
    else:
        host.crash()
        host.boot()
