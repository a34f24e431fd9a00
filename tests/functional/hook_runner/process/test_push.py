# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The daemon's process pushes changes: through failures of the endpoint, kill -9, TLS, and a full spool."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hook_runner.push.spool import FILE_NAME
from support.daemon.daemon_process import DaemonProcess
from support.daemon.metrics_file import read
from support.daemon.simulated_azure import Azure
from support.free_port import free_port
from support.push_endpoint import PushEndpoint, Reaction, push_endpoint
from support.ready_hooks.certificates import Certificates

pytestmark = pytest.mark.all

MakeDaemon = Callable[..., DaemonProcess]
SOON = """
from hook_runner.push import delivery_queue
from hook_runner.service import daemon, metrics_output
delivery_queue.LONGEST_PAUSE = daemon.IDLE_INTERVAL = metrics_output.METRICS_INTERVAL = 0.3
"""


def secret(vm: DaemonProcess, text: str = "s3cret") -> str:
    path: Path = vm.harness.folder / "token"
    path.write_text(text)
    path.chmod(0o600)
    return str(path)


def push_state(vm: DaemonProcess) -> dict[str, Any]:
    state: dict[str, Any] = vm.data("status")[1]["push"]
    return state


def live(azure: Azure, vm: DaemonProcess, endpoint: PushEndpoint) -> None:
    """One event from its announcement to its end."""
    event = azure.schedule("Freeze", started_for=60)
    vm.wait(lambda: ("appeared", "Scheduled") in endpoint.changes())
    azure.approve(event)
    azure.advance(2)
    vm.wait(lambda: ("started", "Started") in endpoint.changes())
    azure.complete(event)
    vm.wait(lambda: ("gone", "Started") in endpoint.changes())


def test_each_change_is_pushed_once_and_status_and_metrics_show_it(azure: Azure, make_daemon: MakeDaemon) -> None:
    vm = make_daemon()
    metrics = vm.harness.folder / "our.prom"
    with push_endpoint() as endpoint:
        vm.harness.configure(push_url=endpoint.url, push_token_file=secret(vm), metrics_file=str(metrics))
        vm.start(first=SOON)
        live(azure, vm, endpoint)
        vm.wait(lambda: push_state(vm)["pending"] == 0)
        state = push_state(vm)
        assert (state["url"], state["delivered"], state["error"]) == (endpoint.url, 3, None)
        assert len({each.change["id"] for each in endpoint.taken}) == 3
        assert {each.change["reporter"] for each in endpoint.taken} == {"vm1"}
        vm.wait(lambda: read(metrics).get(("push_attempts_total", (("result", "delivered"),))) == 3)
        assert vm.command("status").stdout.count(f"push       {endpoint.url}: last delivery ") == 1
    assert "s3cret" not in "".join(vm.log()) + vm.command("status", "--json").stdout


def test_changes_survive_kill_9_while_the_endpoint_is_down(azure: Azure, make_daemon: MakeDaemon) -> None:
    port = free_port()
    vm = make_daemon(push_url=f"http://127.0.0.1:{port}/endpoint").start(first=SOON)
    first = azure.schedule("Reboot", hold=True)
    vm.wait(lambda: push_state(vm)["pending"] == 1 and push_state(vm)["error"])
    assert vm.command("status").returncode == 1
    vm.stop(signal.SIGKILL)
    azure.cancel(first)
    vm.start(first=SOON)
    vm.wait(lambda: push_state(vm)["pending"] == 2)
    vm.stop(signal.SIGKILL)
    with push_endpoint(Reaction(503, (("Retry-After", "0"),)), Reaction(), port=port) as endpoint:
        vm.start(first=SOON)
        vm.wait(lambda: len(endpoint.taken) >= 2)
        assert endpoint.changes() == [("appeared", "Scheduled"), ("gone", "Scheduled")]
        assert endpoint.requests[0].body == endpoint.requests[1].body  # the repetition, with the same id
        vm.wait(lambda: vm.data("status")[0] == 0)


def test_a_slow_endpoint_delays_neither_polls_nor_hooks_nor_approvals(azure: Azure, make_daemon: MakeDaemon) -> None:
    with push_endpoint(Reaction(drip=30.0)) as endpoint:
        vm = make_daemon(push_url=endpoint.url, push_timeout=100)
        vm.harness.hook("prepare/10-a")
        vm.start()
        azure.schedule("Reboot", hold=True)
        vm.wait(lambda: endpoint.requests)
        vm.wait(azure.approvals)
        assert push_state(vm)["delivered"] == push_state(vm)["failed"] == 0
        assert vm.stop() < 30


def test_wrong_credentials_wait_and_go_out_when_the_file_is_corrected(azure: Azure, make_daemon: MakeDaemon) -> None:
    with push_endpoint(Reaction(401)) as endpoint:
        vm = make_daemon()
        path = secret(vm, "old")
        vm.harness.configure(push_url=endpoint.url, push_token_file=path)
        vm.start(first=SOON)
        azure.schedule("Reboot", hold=True)
        vm.wait(lambda: len(endpoint.requests) > 4)
        assert push_state(vm)["error"] == f"{endpoint.url} answered 401"
        Path(path).chmod(0o644)
        vm.wait(lambda: "other users can read it (mode 0644)" in push_state(vm)["error"])
        secret(vm, "new")
        endpoint.reactions = [Reaction()]
        vm.wait(lambda: endpoint.taken)
        assert endpoint.taken[0].headers["authorization"] == "Bearer new"


def test_tls_and_check_with_a_private_authority(azure: Azure, make_daemon: MakeDaemon, tmp_path: Path) -> None:
    certificates = Certificates(tmp_path, "127.0.0.1")
    with push_endpoint(context=certificates.server_context()) as endpoint:
        vm = make_daemon(push_url=endpoint.url)
        vm.start(first=SOON)
        azure.schedule("Reboot", hold=True)
        vm.wait(lambda: "its certificate is refused" in (push_state(vm)["error"] or ""))
        assert push_findings(vm)["error"]
        vm.stop()
        vm.harness.configure(push_ca_file=str(certificates.authority), push_token_file=secret(vm))
        vm.start(first=SOON)
        vm.wait(lambda: endpoint.changes() == [("appeared", "Scheduled")])
        (text,) = push_findings(vm)["info"]
        assert "its certificate is valid; no request was sent" in text
        assert len(endpoint.requests) == 1


def push_findings(vm: DaemonProcess) -> dict[str, list[str]]:
    """The texts of `check` about the push, by severity."""
    found: dict[str, list[str]] = {"error": [], "warning": [], "info": []}
    for each in vm.data("check")[1]["findings"]:
        if each["what"] == "push":
            found[each["severity"]].append(each["text"])
    return found


def test_check_finds_bad_secrets_and_an_endpoint_that_does_not_answer(make_daemon: MakeDaemon) -> None:
    vm = make_daemon(push_url=f"http://127.0.0.1:{free_port()}/")
    vm.harness.configure(push_token_file=secret(vm), push_hmac_file=str(vm.harness.folder / "none"))
    Path(vm.harness.folder / "token").chmod(0o640)
    found = push_findings(vm)
    assert [text.split(": ")[1] for text in found["error"][:2]] == ["push_token_file", "push_hmac_file"]
    assert "refused" in found["error"][2] and "not https" in found["warning"][0]


def test_a_removed_spool_is_written_again(azure: Azure, make_daemon: MakeDaemon) -> None:
    vm = make_daemon(push_url=f"http://127.0.0.1:{free_port()}/").start(first=SOON)
    azure.schedule("Reboot", hold=True)
    vm.wait(lambda: push_state(vm)["pending"] == 1)
    spool = vm.harness.folder / "state" / FILE_NAME
    spool.unlink()
    azure.schedule("Reboot", "vm2", hold=True)
    vm.wait(lambda: push_state(vm)["pending"] == 2)
    vm.stop(signal.SIGKILL)
    vm.start(first=SOON)
    vm.wait(lambda: push_state(vm)["pending"] == 2)
