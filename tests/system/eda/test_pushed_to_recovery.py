# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The rulebook maintenance_pushed: reports with TLS and a token start the maintenance."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible_collections.azure_imds.scheduled_events.plugins.plugin_utils._ready_hooks import hook_files

from support.daemon.daemon_process import DaemonProcess
from support.daemon.runner_harness import RunnerHarness
from support.daemon.simulated_azure import Azure
from support.eda.rulebook import COLLECTION, Rulebook
from support.eda.three_hosts import EVENT, NAMES, ThreeHosts
from support.eda.web_hook import TOKEN, WebHook, change_of, notify_entry
from support.maintenance.fleet import LIFE
from support.repository import REPOSITORY
from support.simulator_process import Simulator, reserved_port
from support.wait import wait_until

pytestmark = pytest.mark.all

READY_HOOKS = REPOSITORY / "roles" / "ready_hooks" / "files"
# the inventory has other names than Azure
HOSTS = {f"{name}-example": name for name in NAMES}
PATTERN = {"AZURE_SCHEDULED_EVENTS_HOST_PATTERN": "vm[0-9]+", "AZURE_SCHEDULED_EVENTS_HOST_TEMPLATE": r"\g<0>-example"}


@pytest.fixture
def hook(tmp_path: Path) -> Iterator[WebHook]:
    with reserved_port() as port:
        yield WebHook(tmp_path / "hook", port)


@pytest.fixture
def hook_runners(trio: Simulator, tmp_path: Path, hook: WebHook) -> Iterator[list[DaemonProcess]]:
    """A hook runner on each VM, which approves nothing and has the ready hook notify alone."""
    token = tmp_path / "token"
    token.write_text(f"Bearer {TOKEN}")
    token.chmod(0o600)
    with contextlib.ExitStack() as closing:
        made = []
        for name in NAMES:
            folder = tmp_path / "hook-runners" / name
            folder.mkdir(parents=True)
            harness = RunnerHarness(folder, Azure(trio), name, policy="observe")
            closing.callback(harness.close)
            harness.configure(environment={"READY_HOOKS_LIBRARY": str(READY_HOOKS)})
            entry = notify_entry(hook.url, str(token), str(hook.authority))
            entry["state_directory"] = str(folder / "records")
            for each in hook_files([entry], "ready_hooks", sys.executable):
                path = harness.hooks_directory / each["stage"] / each["name"]
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(each["content"])
                path.chmod(0o755)
            made.append(DaemonProcess(harness))
            closing.callback(made[-1].close)
        yield made


def test_ready_hook_starts_one_maintenance_per_event(
    trio: Simulator, tmp_path: Path, hook: WebHook, hook_runners: list[DaemonProcess]
) -> None:
    """The first event is announced before the rulebook listens; the hooks try again."""
    hosts = ThreeHosts(trio, tmp_path, HOSTS)
    for daemon in hook_runners:
        daemon.start()
    trio.post("/events", EVENT)
    wait_until(lambda: all("running" in states(each, "prepare") for each in hook_runners), "hooks that try again")
    name = COLLECTION + "maintenance_pushed"
    with Rulebook(tmp_path, hosts.inventory, name, hook.variables, PATTERN) as rulebook:
        for number in (1, 2):
            if number > 1:
                trio.post("/events", EVENT)
            hosts.wait_for_approval(number, rulebook.log)
            wait_for_reports(hook_runners, "prepare", number)
            trio.advance(1)
            hosts.wait_for_polls()
            wait_for_reports(hook_runners, "started", number)
            trio.advance(LIFE)
            hosts.wait_for_recovery(number, rulebook.log)
            wait_for_reports(hook_runners, "recover", number)
        wait_until(lambda: rulebook.runs() >= 2, "two runs of the playbook", rulebook.log)
    assert [line["vm"] for line in hosts.approvals()] == ["vm1", "vm1"]
    for step in ("prepare", "recover"):
        assert sorted(hosts.course_of(step)) == sorted(list(HOSTS) * 2)
    assert rulebook.runs() == 2


def states(daemon: DaemonProcess, stage: str) -> list[str]:
    """Return the states of the hook runs in a stage, of all events."""
    return [
        run["state"]
        for maintenance in daemon.data("history")[1]
        for run in maintenance["hooks"]
        if run["stage"] == stage
    ]


def wait_for_reports(hook_runners: list[DaemonProcess], stage: str, number: int) -> None:
    """Wait until the hook of each VM has succeeded in this stage of so many events."""
    wait_until(
        lambda: all(states(each, stage) == ["ok"] * number for each in hook_runners),
        f"the reports of {stage}",
        lambda: [each.log() for each in hook_runners],
    )


def test_event_without_a_host_and_advice_start_no_maintenance(trio: Simulator, tmp_path: Path, hook: WebHook) -> None:
    """An empty list of hosts would not limit the run."""
    hosts = ThreeHosts(trio, tmp_path)
    with Rulebook(tmp_path, hosts.inventory, COLLECTION + "maintenance_pushed", hook.variables) as rulebook:
        wait_until(lambda: answers(hook), "the web hook answers", rulebook.log)
        assert hook.post({}, token="another") == 401
        event_id = trio.post("/events", EVENT)["id"]
        for name in ("all", "!vm1", "vm*"):
            assert hook.post(change_of(name, name)) == 200
        assert hook.post({"schema": "azure_imds.scheduled_events/change/1"}) == 200
        assert hook.post(change_of("advice", "vm2", kind="SpotRebalanceRecommendation")) == 200
        assert hook.post(change_of(event_id, "vm3")) == 200
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
