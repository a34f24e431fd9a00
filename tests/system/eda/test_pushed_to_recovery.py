# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The rulebook maintenance_pushed: reports with TLS, a token and a signature start the maintenance."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.daemon.daemon_process import DaemonProcess
from support.daemon.engine_harness import EngineHarness
from support.daemon.simulated_azure import Azure
from support.eda.rulebook import COLLECTION, Rulebook
from support.eda.three_hosts import EVENT, NAMES, ThreeHosts
from support.eda.web_hook import SECRET, TOKEN, WebHook, change_of, event_of
from support.maintenance.fleet import LIFE
from support.simulator_process import Simulator, reserved_port
from support.wait import wait_until

pytestmark = pytest.mark.all

REPORT_ONLY: dict[str, Any] = {"rules": [{"name": "report only", "do": "log"}]}
# the inventory has other names than Azure
HOSTS = {f"{name}-example": name for name in NAMES}
PATTERN = {"AZURE_SCHEDULED_EVENTS_HOST_PATTERN": "vm[0-9]+", "AZURE_SCHEDULED_EVENTS_HOST_TEMPLATE": r"\g<0>-example"}


@pytest.fixture
def hook(tmp_path: Path) -> Iterator[WebHook]:
    with reserved_port() as port:
        yield WebHook(tmp_path / "hook", port)


def secret(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.write_text(text)
    path.chmod(0o600)
    return str(path)


@pytest.fixture
def hook_runners(trio: Simulator, tmp_path: Path, hook: WebHook) -> Iterator[list[DaemonProcess]]:
    """A hook runner on each VM, which only reports."""
    with contextlib.ExitStack() as closing:
        made = []
        for name in NAMES:
            folder = tmp_path / "hook-runners" / name
            folder.mkdir(parents=True)
            harness = EngineHarness(folder, Azure(trio), name, policy=REPORT_ONLY)
            closing.callback(harness.close)
            harness.configure(
                push_url=hook.url,
                push_token_file=secret(folder, "token", TOKEN),
                push_hmac_file=secret(folder, "hmac", SECRET),
                push_ca_file=str(hook.authority),
            )
            made.append(DaemonProcess(harness))
            closing.callback(made[-1].close)
        yield made


def test_hook_runners_start_one_maintenance_per_event(
    trio: Simulator, tmp_path: Path, hook: WebHook, hook_runners: list[DaemonProcess]
) -> None:
    hosts = ThreeHosts(trio, tmp_path, HOSTS)
    name = COLLECTION + "maintenance_pushed"
    with Rulebook(tmp_path, hosts.inventory, name, hook.variables, PATTERN) as rulebook:
        for daemon in hook_runners:
            daemon.start()
        for number in (1, 2):
            trio.post("/events", EVENT)
            hosts.wait_for_approval(number, rulebook.log)
            trio.advance(1)
            hosts.wait_for_polls()
            trio.advance(LIFE)
            hosts.wait_for_recovery(number, rulebook.log)
        wait_until(lambda: rulebook.runs() >= 2, "two runs of the playbook", rulebook.log)
        wait_until(lambda: all(has_delivered_all(daemon) for daemon in hook_runners), "all reports", rulebook.log)
    assert [line["vm"] for line in hosts.approvals()] == ["vm1", "vm1"]
    for step in ("prepare", "recover"):
        assert sorted(hosts.course_of(step)) == sorted(list(HOSTS) * 2)
    assert rulebook.runs() == 2


def has_delivered_all(daemon: DaemonProcess) -> bool:
    """Return True if the reports of both events have arrived: appeared, started and gone of each."""
    push = json.loads(daemon.command("status", "--json").stdout)["push"]
    return bool(push["delivered"] >= 6 and not push["pending"])


def test_event_without_a_host_and_advice_start_no_maintenance(trio: Simulator, tmp_path: Path, hook: WebHook) -> None:
    """An empty list of hosts would not limit the run."""
    hosts = ThreeHosts(trio, tmp_path)
    with Rulebook(tmp_path, hosts.inventory, COLLECTION + "maintenance_pushed", hook.variables) as rulebook:
        wait_until(lambda: answers(hook), "the web hook answers", rulebook.log)
        assert hook.post({}, token="another") == hook.post({}, secret="another") == 401
        trio.post("/events", EVENT)
        event = event_of(trio, "vm1")
        for name in ("all", "!vm1", "vm*"):
            assert hook.post(change_of("appeared", {**event, "event_id": name, "resources": [name]}, "vm1")) == 200
        assert hook.post({"schema": "azure_imds.scheduled_events/change/1"}) == 200
        advice = {**event, "event_id": "advice", "event_type": "SpotRebalanceRecommendation", "resources": ["vm2"]}
        assert hook.post(change_of("appeared", advice, "vm2")) == 200
        assert hook.post(change_of("appeared", {**event, "resources": ["vm3"]}, "vm1")) == 200
        # the run for vm3 comes after those that the others might have started
        wait_until(lambda: hosts.note("vm3"), "the host has a note", rulebook.log)
    assert hosts.course_of("prepare") in ([], ["vm3"]) and not (hosts.note("vm1") or hosts.note("vm2"))
    assert "unreadable delivery" in rulebook.log() and "no host for '!vm1'" in rulebook.log()


def answers(hook: WebHook) -> bool:
    """Return True if the web hook is open."""
    try:
        return hook.post({"hello": "world"}) == 200
    except OSError:
        return False
