# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The state of the daemon as JSON, as text and as one line, and its exit status."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from azure_scheduled_events.document import EventDocument, ScheduledEvent
from azure_scheduled_events.errors import ImdsError
from hook_runner.clock import ServerClock
from hook_runner.hooks.runs import HookRuns
from hook_runner.imds_health import ImdsHealth
from hook_runner.maintenance.record import Maintenance, State
from hook_runner.record_store import RecordStore
from hook_runner.reporting import status
from hook_runner.runner import Runner
from support.daemon.machine_driver import AFTER_PREPARE, EPOCH, Driver, event, hook

CONFIGURATION = {
    "path": "/etc/config.yml",
    "loaded_at": "2026-11-23T00:00:00Z",
    "hooks_directory": "/etc/hooks.d",
    "differs": False,
    "changed": [],
    "restart_needed": [],
    "refusal": None,
}
DRAIN, JOIN = hook("prepare/10-drain"), hook("recover/10-join")


class Vm:
    """The runner of a daemon whose machine a driver drives, second by second."""

    def __init__(self, folder: Path, *hooks: Any) -> None:
        self.driver = Driver(*hooks, policy=AFTER_PREPARE)
        self.health = ImdsHealth()
        store = RecordStore(str(folder / "state"), "boot-1", print)
        store.load()
        host = self.driver.host
        self.runs = HookRuns(str(folder / "run"))
        self._sent: list[ScheduledEvent] = []
        clock = ServerClock(lambda: self.driver.at, lambda: self.driver.now)
        settings = host.settings._replace(resource_name="vm1")
        self.runner = Runner(settings, host.hooks, store, self.runs, clock, self.health, self._sent.append)
        self.runner.machine = self.driver.machine

    def read(self, *events: ScheduledEvent) -> None:
        """Let a second pass, with a document of these events."""
        self.driver.seconds(1, *events)
        self.health.poll_succeeded(EventDocument(1, events, ()), self.driver.now)

    def data(self) -> dict[str, Any]:
        found = {**status.to_data(self.runner), "version": "1", "configuration": CONFIGURATION}
        return dict(json.loads(json.dumps(found)))

    def line(self) -> str:
        return status.summary(self.runner)


def test_data_have_the_members_of_the_contract(tmp_path: Path) -> None:
    vm = Vm(tmp_path, DRAIN)
    vm.read(event(vms=("vm1", "vm2")), event("e2", vms=("vm3",)))
    vm.driver.end_hook()
    vm.read(event(vms=("vm1", "vm2")), event("e2", vms=("vm3",)))
    data = vm.data()
    assert set(data) - {"version", "configuration"} == {
        *("vm", "policy", "leader", "dry_run", "paused", "maintenance", "events", "imds", "records")
    }
    assert (data["vm"], data["paused"], data["leader"], data["dry_run"]) == ("vm1", None, "self-only", False)
    maintenance = data["maintenance"]
    number = maintenance["id"]
    assert number.isdecimal() and maintenance == {
        "id": number,
        "phase": "prepared",
        "since": "2026-11-23T00:00:01Z",
        "outcome": None,
        "lacks_events": False,
        "not_recovered": [],
        "next_attempt": None,
        "hooks": [
            {
                "stage": "prepare",
                "name": "10-drain",
                "state": "ok",
                "attempt": 1,
                "event": "e1",
                "reason": None,
                "started": "2026-11-23T00:00:01.000Z",
                "ended": "2026-11-23T00:00:01.000Z",
            }
        ],
    }
    own, others = data["events"]
    assert own == {
        **json.loads(json.dumps(event(vms=("vm1", "vm2")).as_dict())),
        "affects_this_vm": True,
        "first_seen": "2026-11-23T00:00:01Z",
        "seconds_left": 898,
        "listed": True,
        "named": ["vm1", "vm2"],
        "readable": True,
        "prepared": "ok",
        "approval": None,
        "approval_by": None,
        "approval_error": None,
        "reason": own["reason"],
        "reason_code": "others_affected",
    }
    assert "other VMs" in own["reason"] or "vm2" in own["reason"]
    assert (others["affects_this_vm"], others["prepared"], others["reason_code"]) == (False, "none", "other_vms")
    assert set(data["imds"]) == {
        *("ok", "confirmed", "last_good_poll", "stale_since", "error", "incomplete_since", "errors")
    }
    assert data["records"] == {"ok": True, "error": None, "since": None, "set_aside": []}
    assert status.is_healthy(data)
    text = status.to_text(data)
    for words in (
        f"maintenance {number}, prepared",
        "prepare/10-drain ok",
        "affects this VM (vm1, vm2)",
        "affects other",
    ):
        assert words in text, words


def test_without_events_there_is_no_maintenance(tmp_path: Path) -> None:
    vm = Vm(tmp_path, DRAIN)
    assert status.to_text(vm.data()).endswith("\nevents     none known; IMDS gives no good answer")
    vm.read()
    data = vm.data()
    assert (data["maintenance"], data["events"], status.is_healthy(data)) == (None, [], True)
    assert status.to_text(data).endswith("\nevents     none")


def test_failed_preparation_needs_an_operator(tmp_path: Path) -> None:
    vm = Vm(tmp_path, DRAIN)
    vm.read(event())
    vm.driver.end_hook("failed", exit_status=3)
    data = vm.data()
    assert data["events"][0]["prepared"] == "failed" and not status.is_healthy(data)
    assert "prepare/10-drain failed (exit status 3)" in status.to_text(data)


def test_recover_hook_that_failed_needs_an_operator_until_it_succeeds(tmp_path: Path) -> None:
    vm = Vm(tmp_path, JOIN)
    vm.read(event())
    for _second in range(4):
        vm.read()
    recovering = vm.data()["maintenance"]
    assert (recovering["phase"], recovering["outcome"], recovering["not_recovered"]) == ("recovering", "unknown", [])
    assert status.is_healthy(vm.data())
    vm.driver.end_hook("failed", exit_status=3)
    data = vm.data()
    assert data["maintenance"]["not_recovered"] == ["10-join"] and data["maintenance"]["next_attempt"] == 10
    assert not status.is_healthy(data) and "NOT RECOVERED: recover/10-join; next attempt in 10 s" in status.to_text(
        data
    )
    assert vm.line() == "watching as vm1: NOT RECOVERED"
    for _second in range(11):
        vm.read()
    vm.driver.end_hook()
    assert vm.data()["maintenance"] is None and status.is_healthy(vm.data())


@pytest.mark.parametrize(
    "member, value",
    [
        ("vm", None),
        ("paused", {"since": "x", "until": None, "by": "root", "reason": None}),
        ("imds", {"ok": False, "incomplete_since": None}),
        ("imds", {"ok": True, "incomplete_since": "x"}),
        ("records", {"ok": False}),
        ("configuration", {"differs": True}),
        ("events", [{"affects_this_vm": True, "prepared": "ok", "approval_error": "403"}]),
    ],
)
def test_state_that_needs_an_operator_is_not_healthy(tmp_path: Path, member: str, value: object) -> None:
    vm = Vm(tmp_path)
    vm.read()
    assert status.is_healthy(vm.data())
    assert not status.is_healthy({**vm.data(), member: value})


def test_pause_is_shown_first(tmp_path: Path) -> None:
    vm = Vm(tmp_path)
    vm.read()
    vm.driver.machine.pause("root", None, "a \x1b test", EPOCH)
    data = vm.data()
    assert data["paused"] == {"since": "2026-11-23T00:00:00Z", "until": None, "by": "root", "reason": "a ? test"}
    assert status.to_text(data).startswith("PAUSED     by root until it is resumed: a ? test\n")
    assert vm.line() == "paused; watching as vm1: no events"


def test_reason_is_what_the_next_hook_waits_for(tmp_path: Path) -> None:
    vm = Vm(tmp_path, DRAIN)
    vm.read(event())
    vm.runner.waiting_for = "room in /run"
    (shown,) = vm.data()["events"]
    assert (shown["reason_code"], shown["reason"]) == ("hook_waits", "the next hook waits for room in /run")


def test_record_that_may_lack_events_is_shown(tmp_path: Path) -> None:
    vm = Vm(tmp_path)
    vm.driver = Driver(disk=(State(), Maintenance(7, EPOCH, may_lack_events=True)))
    vm.runner.machine = vm.driver.machine
    data = vm.data()
    assert (data["maintenance"]["id"], data["maintenance"]["lacks_events"]) == ("7", True)
    assert "may lack events" in status.to_text(data)


def test_configuration_that_is_not_in_force_is_shown(tmp_path: Path) -> None:
    vm = Vm(tmp_path)
    found = {**CONFIGURATION, "changed": ["/etc/config.yml"], "restart_needed": ["timeout"], "refusal": "no such key"}
    text = status.to_text({**vm.data(), "configuration": found})
    for words in ("in force: /etc/config.yml; reload", "was refused: no such key", "need a restart: timeout"):
        assert words in text, words


def test_line_for_systemd_has_the_phase_and_three_events(tmp_path: Path) -> None:
    vm = Vm(tmp_path, DRAIN)
    assert vm.line() == "waiting for the first answer of IMDS"
    vm.health.poll_failed(ImdsError("no route"), False, EPOCH)
    assert vm.line() == "no answer of IMDS yet: no route"
    vm.read()
    assert vm.line() == "watching as vm1: no events"
    vm.read(*(event(f"e{number}") for number in range(5)))
    assert vm.line() == "watching as vm1: preparing; Reboot Scheduled; Reboot Scheduled; Reboot Scheduled, and 2 more"
    vm.health.poll_failed(ImdsError("no route"), False, EPOCH)
    assert vm.line() == "IMDS gives no good answer: no route"


def test_texts_of_imds_steer_no_terminal(tmp_path: Path) -> None:
    vm = Vm(tmp_path)
    evil = event("A\x1b[2J\n", "Re\x1bboot", vms=("vm1", "vm2\n\x1b]0;x\x07\x9b\u202e\ud800"))
    vm.read(evil)
    for line in (*status.to_text(vm.data()).splitlines(), vm.line()):
        assert line.isprintable()
