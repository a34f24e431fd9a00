# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Users who may connect to a socket of the daemon, and mean no good: the daemon goes on, at its usual speed."""

from __future__ import annotations

import grp
import json
import os
import socket
from typing import Any

import pytest

from support.daemon.daemon_process import DaemonProcess, MakeDaemon
from support.daemon.simulated_azure import Azure

SOCKETS = ("control.sock", "status.sock")
OWN_GROUP = grp.getgrgid(os.getgid()).gr_name
ODD: tuple[Any, ...] = (0, -1, 10**22, -(10**22), 1e400, True, "x", [], {}, None)
REQUESTS: tuple[dict[str, Any], ...] = (
    *({"ask": "approve", "event_id": odd} for odd in ODD),
    *({"ask": "pause", key: odd} for key in ("until", "reason") for odd in ODD),
    *({"ask": odd} for odd in ODD),
    {"ask": "history"},
    {"ask": "approve", "event_id": "\ud800"},
)


def connected(vm: DaemonProcess, name: str) -> socket.socket:
    made = socket.socket(socket.AF_UNIX)
    made.settimeout(30)
    made.connect(str(vm.harness.folder / "run" / name))
    return made


def answer_of(vm: DaemonProcess, name: str, request: dict[str, Any]) -> bytes:
    with connected(vm, name) as client:
        client.sendall(json.dumps(request).encode() + b"\n")
        with client.makefile("rb") as answer:
            return answer.readline()


@pytest.mark.parametrize("name", SOCKETS)
def test_no_request_ends_the_daemon(azure: Azure, make_daemon: MakeDaemon, name: str) -> None:
    vm = make_daemon(status_group=OWN_GROUP)
    vm.harness.hook("prepare/10-a")
    vm.start()
    azure.schedule("Reboot", hold=True)
    vm.wait(azure.approvals)
    for request in REQUESTS:
        answer = json.loads(answer_of(vm, name, request))
        assert answer, request
        # the socket of the status group answers nothing else
        is_refused = name == "status.sock" and request["ask"] not in ("status", "history")
        assert ("status_group" in str(answer.get("error"))) == is_refused, request
    assert vm.process is not None and vm.process.poll() is None, vm.log()[-1]


def test_request_that_raises_is_answered_and_logged(azure: Azure, make_daemon: MakeDaemon) -> None:
    vm = make_daemon()
    vm.start(first="from hook_runner.reporting import status; status.to_data = lambda *about: {}[0]")
    assert "KeyError" in json.loads(answer_of(vm, "control.sock", {"ask": "status"}))["error"]
    assert vm.times_logged("KeyError") == 1
    done = vm.command("status")
    assert done.returncode == 1 and "KeyError" in done.stderr
    azure.schedule("Reboot", hold=True)
    vm.wait(azure.approvals)


def test_status_needs_no_name_of_a_user(make_daemon: MakeDaemon) -> None:
    """A directory service that hangs does not hold the daemon while a monitoring agent asks."""
    vm = make_daemon().start(first="import pwd, time; pwd.getpwuid = lambda uid: time.sleep(3600)")
    assert vm.data("status")[0] == 0
