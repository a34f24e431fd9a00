# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Users who may connect to a socket of the daemon, and mean no good: the daemon goes on, at its usual speed."""

from __future__ import annotations

import contextlib
import grp
import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from support.daemon.daemon_process import DaemonProcess
from support.daemon.simulated_azure import Azure

MakeDaemon = Callable[..., DaemonProcess]

SOCKETS = ("control.sock", "status.sock")
OWN_GROUP = grp.getgrgid(os.getgid()).gr_name
ODD: tuple[Any, ...] = (0, -1, 10**22, -(10**22), 1e400, True, "x", [], {}, None)
REQUESTS: tuple[dict[str, Any], ...] = (
    *({"ask": "approve", "event_id": odd} for odd in ODD),
    *({"ask": "pause", key: odd} for key in ("until", "seconds", "reason") for odd in ODD),
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
        assert json.loads(answer_of(vm, name, request)), request
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


@contextlib.contextmanager
def silent_clients(vm: DaemonProcess) -> Iterator[None]:
    """Keep clients connected that never send anything; each one that is left is replaced."""
    is_over = threading.Event()

    def replace() -> None:
        with contextlib.ExitStack() as held:
            clients = [held.enter_context(connected(vm, name)) for name in SOCKETS for _client in range(4)]
            while not is_over.wait(0.01):
                for number, client in enumerate(clients):
                    client.setblocking(False)
                    with contextlib.suppress(BlockingIOError):
                        if client.recv(1) == b"":
                            clients[number] = held.enter_context(connected(vm, SOCKETS[number // 4]))

    replacing = threading.Thread(target=replace)
    replacing.start()
    try:
        yield
    finally:
        is_over.set()
        replacing.join(30)


def test_silent_clients_do_not_delay_hooks(azure: Azure, make_daemon: MakeDaemon) -> None:
    vm = make_daemon(status_group=OWN_GROUP)
    for number in range(8):
        vm.harness.hook(f"prepare/{number}0-a")
    vm.start()
    took = [float("inf")]
    with silent_clients(vm):
        # a machine that is busy may need longer once, but not each time
        for hooks in (8, 16, 24):
            if min(took) < 5:
                break
            azure.schedule("Reboot", hold=True)
            vm.wait(lambda hooks=hooks: len(vm.harness.marks("begin")) > hooks - 8)  # type: ignore[misc]
            began = time.monotonic()
            vm.wait(lambda hooks=hooks: len(vm.harness.marks("end")) == hooks)  # type: ignore[misc]
            took.append(time.monotonic() - began)
        assert json.loads(answer_of(vm, "control.sock", {"ask": "status"}))["vm"] == "vm1"
        assert json.loads(answer_of(vm, "status.sock", {"ask": "status"}))["vm"] == "vm1"
    # it is more than seven if each end of a hook waits for a client of both sockets
    assert min(took) < 5
