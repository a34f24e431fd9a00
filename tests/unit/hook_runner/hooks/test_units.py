# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The requests to systemd for the unit of a hook. tests/system/hosts/test_hook_units.py shows their effect."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from hook_runner.config.hook_limits import INFINITY, LIMITS, read_limits
from hook_runner.hooks import dbus_message, units
from hook_runner.hooks.spawning import HostEnds
from hook_runner.hooks.systemd_manager import Refused
from support.daemon.documents import REFERENCE, quoted, rows
from support.daemon.engine_harness import EngineHarness
from support.daemon.simulated_azure import Azure

WANTED = units.UnitRequest("prepare", "10-drain", 7, "E-1", 60.0, 5.0, {"MemoryMax": 1 << 30}, None)


def value(wanted: units.UnitRequest, name: str) -> object:
    return next(each.value for each in units.properties("/run/x/7", wanted) if each.name == name)


def test_limits_are_read_in_the_notation_of_systemd() -> None:
    given = {
        "MemoryMax": "1G",
        "MemoryHigh": 4096,
        "MemorySwapMax": "infinity",
        "CPUQuota": "150%",
        "TasksMax": 50,
        "Nice": -5,
    }
    assert read_limits(given) == {
        "MemoryMax": 1 << 30,
        "MemoryHigh": 4096,
        "MemorySwapMax": INFINITY,
        "CPUQuota": 1500000,
        "TasksMax": 50,
        "Nice": -5,
    }
    assert read_limits({}) == {}


@pytest.mark.parametrize(
    "given",
    [
        [],
        "x",
        {"MemoryMaximum": 1},
        {"MemoryMax": "lots"},
        {"MemoryMax": True},
        {"CPUQuota": "0%"},
        {"CPUQuota": 5},
        {"TasksMax": 0},
        {"Nice": 20},
        {"ExecStartPre": "x"},
        {"OOMScoreAdjust": "much"},
    ],
)
def test_limits_that_systemd_would_not_take_are_refused(given: object) -> None:
    with pytest.raises(ValueError, match="expected|unknown key"):
        read_limits(given)


def test_limits_are_documented() -> None:
    (cell,) = [cells[3] for cells in rows(REFERENCE, "Keys of one hook") if cells[0] == "`unit`"]
    assert [word for word in quoted(cell) if word in LIMITS] == list(LIMITS)


def test_names_say_which_hook_it_is_and_hold_nothing_that_systemd_refuses() -> None:
    assert units.unit_name("prepare", "10-drain", 7) == "azure-scheduled-events-hook-prepare-10-drain-7.service"
    assert len(units.unit_name("emergency", "x" * 255, 1 << 50)) < 255
    assert units.unit_name("prepare", "a b@", 7) == "azure-scheduled-events-hook-prepare-a_b_-7.service"


def test_unit_is_ended_by_its_keeper_first_and_after_the_daemon() -> None:
    assert (value(WANTED, "KillMode"), value(WANTED, "Before")) == ("mixed", ["azure-scheduled-events.service"])
    # TERM to the supervisor, KILL to the hook after 5 s, and some time for the supervisor itself
    assert value(WANTED, "TimeoutStopUSec") == 9_000_000
    assert value(WANTED, "RuntimeMaxUSec") == 99_000_000
    assert value(WANTED, "MemoryMax") == 1 << 30


def test_variables_of_systemd_in_paths_are_not_expanded() -> None:
    (command,) = next(each.value for each in units.properties("/run/$HOME", WANTED) if each.name == "ExecStart")
    assert command[1][-2:] == ["/run/$$HOME", "unit"]


def test_message_is_what_the_specification_says() -> None:
    assert dbus_message.split("ssa(sv)a(sa(sv))") == ["s", "s", "a(sv)", "a(sa(sv))"]
    message = dbus_message.call(1, "/a", "i.f", "M", "sa(sv)", ("xy", [("n", ("t", 5))]), 1)
    assert message[:4] == b"l\1\0\1" and dbus_message.length(message[:16]) == len(message)
    body, serial, _fields = struct.unpack_from("<III", message, 4)
    assert serial == 1
    # a string, padding, the length of the array and padding to its first struct, which is not a part
    # of the length
    assert message[-body:] == b"\2\0\0\0xy\0\0" + struct.pack("<I", 24) + bytes(4) + b"\1\0\0\0n\0" + b"\1t\0" + bytes(
        7
    ) + struct.pack("<Q", 5)


def test_exit_statuses_differ_from_signals_and_errors_have_their_text() -> None:
    call = dbus_message.call(9, "/a", "i.f", "M", "s", ("no such thing",))
    assert dbus_message.reply(call) is None
    fields = (
        b"\5\1u\0" + struct.pack("<I", 9) + b"\4\1s\0" + struct.pack("<I", 3) + b"a.b\0" + bytes(4) + b"\10\1g\0\1s\0"
    )
    body = struct.pack("<I", 4) + b"gone\0"
    error = b"l\3\0\1" + struct.pack("<III", len(body), 1, len(fields)) + fields + bytes(-len(fields) % 8) + body
    assert dbus_message.reply(error) == dbus_message.Reply(9, "a.b", "gone")
    with pytest.raises(ValueError):
        dbus_message.length(b"HTTP/1.1 400 Bad")


class Systemd:
    """A stand-in for systemd's manager that refuses to start units."""

    def __init__(self, error: OSError) -> None:
        self.error = error
        self.asked = 0

    def start(self, folder: str, wanted: units.UnitRequest) -> None:
        self.asked += 1
        raise self.error


def refused_by(systemd: Systemd, vm: EngineHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the harness's next starts go to this systemd."""
    monkeypatch.setattr(units, "start_unit", systemd.start)
    monkeypatch.setattr(vm.runs, "_in_units", True)


def test_hook_that_the_end_of_the_host_kept_from_running_runs_after_the_boot(
    azure: Azure, make_vm: Callable[..., EngineHarness], monkeypatch: pytest.MonkeyPatch
) -> None:
    vm = make_vm(hooks={"10-a": {"rerun": False}})
    vm.hook("prepare/10-a")
    vm.start()
    systemd = Systemd(HostEnds("the host is going down"))
    refused_by(systemd, vm, monkeypatch)
    event = azure.schedule("Reboot")
    vm.poll()
    vm.poll(after=1)
    assert (systemd.asked, vm.steps(event)) == (1, [("prepare/10-a", "stopped")])
    assert list(Path(vm.settings.run_directory, "runs").iterdir()) == []
    vm.restart("reboot")
    vm.poll(after=30)
    assert vm.ran() == ["prepare/10-a"] and azure.approvals() == [("vm1", event)]


def test_hook_whose_unit_systemd_refuses_has_failed(
    azure: Azure, vm: EngineHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    vm.start()
    refused_by(Systemd(Refused("no")), vm, monkeypatch)
    event = azure.schedule("Reboot")
    vm.poll()
    assert vm.steps(event) == [("prepare/10-a", "failed")] and azure.approvals() == []
