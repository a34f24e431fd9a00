# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The rulebook maintenance_pushed: reports at a web hook with TLS, a token and a signature start the maintenance."""

from __future__ import annotations

from pathlib import Path

from support.eda.rulebook import COLLECTION, Rulebook
from support.eda.three_hosts import EVENT, NAMES, ThreeHosts
from support.eda.web_hook import WebHook, change_of, event_of
from support.maintenance.fleet import LIFE
from support.simulator_process import Simulator, reserved_port
from support.wait import wait_until

# the inventory has other names than Azure
HOSTS = {f"{name}-example": name for name in NAMES}
PATTERN = {"AZURE_SCHEDULED_EVENTS_HOST_PATTERN": "vm[0-9]+", "AZURE_SCHEDULED_EVENTS_HOST_TEMPLATE": r"\g<0>-example"}


def test_reports_of_three_vms_start_one_maintenance_per_event(trio: Simulator, tmp_path: Path) -> None:
    hosts = ThreeHosts(trio, tmp_path, HOSTS)
    with reserved_port() as port:
        hook = WebHook(tmp_path / "hook", port)
    name = COLLECTION + "maintenance_pushed"
    with Rulebook(tmp_path, hosts.inventory, name, hook.variables, PATTERN) as rulebook:
        wait_until(lambda: answers(hook), "the web hook answers", rulebook.log)
        assert hook.post({}, token="another") == hook.post({}, secret="another") == 401
        for number in (1, 2):
            trio.post("/events", EVENT)
            announced = event_of(trio, "vm1")
            for vm in NAMES:
                report = change_of("appeared", announced, vm)
                assert hook.post(report) == hook.post(report) == 200
            hosts.wait_for_approval(number, rulebook.log)
            trio.advance(1)
            for vm in NAMES:
                assert hook.post(change_of("started", event_of(trio, vm), vm)) == 200
            hosts.wait_for_polls()
            trio.advance(LIFE)
            hosts.wait_for_recovery(number, rulebook.log)
            for vm in NAMES:
                assert hook.post(change_of("gone", announced, vm)) == 200
            # late
            assert hook.post({**change_of("appeared", announced, "vm2"), "observed_at": "2026-01-01T00:00:00Z"}) == 200
        wait_until(lambda: rulebook.runs() >= 2, "two runs of the playbook", rulebook.log)
    assert len(hosts.approvals()) == 2
    for step in ("prepare", "recover"):
        assert sorted(hosts.course_of(step)) == sorted(list(HOSTS) * 2)


def test_event_without_a_host_starts_no_maintenance(trio: Simulator, tmp_path: Path) -> None:
    """An empty list of hosts would be no limit."""
    hosts = ThreeHosts(trio, tmp_path)
    with reserved_port() as port:
        hook = WebHook(tmp_path / "hook", port)
    with Rulebook(tmp_path, hosts.inventory, COLLECTION + "maintenance_pushed", hook.variables) as rulebook:
        wait_until(lambda: answers(hook), "the web hook answers", rulebook.log)
        trio.post("/events", EVENT)
        event = event_of(trio, "vm1")
        for name in ("all", "!vm1", "vm*"):
            assert hook.post(change_of("appeared", {**event, "event_id": name, "resources": [name]}, "vm1")) == 200
        assert hook.post({"schema": "azure_imds.scheduled_events/change/1"}) == 200
        assert hook.post(change_of("appeared", {**event, "resources": ["vm3"]}, "vm1")) == 200
        # the run for vm3 comes after those that the others might have started
        wait_until(lambda: hosts.note("vm3"), "the host has a note", rulebook.log)
    assert hosts.course_of("prepare") in ([], ["vm3"]) and not hosts.note("vm1")
    assert "unreadable delivery" in rulebook.log() and "no host for '!vm1'" in rulebook.log()


def answers(hook: WebHook) -> bool:
    """Return True if the web hook is open."""
    try:
        return hook.post({"hello": "world"}) == 200
    except OSError:
        return False
