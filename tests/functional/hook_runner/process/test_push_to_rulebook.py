# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The daemon pushes to eda.builtin.webhook of ansible-rulebook, which verifies token, signature and TLS."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from support.daemon.daemon_process import DaemonProcess
from support.daemon.simulated_azure import Azure
from support.free_port import free_port

pytestmark = pytest.mark.all

MakeDaemon = Callable[..., DaemonProcess]

# the plugin with a queue that prints what a rulebook would get
RECEIVER = """
import asyncio, json, sys
from ansible_rulebook.event_source import webhook

class Printed(asyncio.Queue):
    async def put(self, event):
        print(json.dumps(event), flush=True)

asyncio.run(webhook.main(Printed(), json.loads(sys.argv[1])))
"""


@contextmanager
def webhook(folder: Path, port: int, **arguments: Any) -> Iterator[Path]:
    """Run the plugin; yield the file with the events that it has accepted."""
    accepted = folder / "accepted"
    settings = json.dumps({"host": "127.0.0.1", "port": port, **arguments})
    with accepted.open("wb") as out, (folder / "webhook.log").open("wb") as log:
        process = subprocess.Popen([sys.executable, "-c", RECEIVER, settings], stdout=out, stderr=log)
    try:
        yield accepted
    finally:
        process.kill()
        process.wait()


def events(accepted: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in accepted.read_text().splitlines()]


def secret(vm: DaemonProcess, name: str, text: str) -> str:
    path: Path = vm.harness.folder / name
    path.write_text(text)
    path.chmod(0o600)
    return str(path)


@pytest.mark.parametrize(
    ("algorithm", "header", "form"),
    [
        ("sha256", "x-hub-signature-256", "hex"),
        ("sha512", "X-Mine", "base64"),
    ],
)
def test_the_webhook_accepts_token_and_signature(
    azure: Azure, make_daemon: MakeDaemon, tmp_path: Path, algorithm: str, header: str, form: str
) -> None:
    port = free_port()
    vm = make_daemon(push_url=f"http://127.0.0.1:{port}/endpoint")
    vm.harness.configure(
        push_token_file=secret(vm, "token", "t0ken\n"),
        push_hmac_file=secret(vm, "hmac", "k3y\n"),
        push_hmac_algorithm=algorithm,
        push_hmac_header=header,
        push_hmac_format=form,
    )
    options = {"token": "t0ken", "hmac_secret": "k3y"}
    if algorithm != "sha256":
        options.update(hmac_algo=algorithm, hmac_header=header, hmac_format=form)
    with webhook(tmp_path, port, **options) as accepted:
        vm.start()
        event = azure.schedule("Reboot", hold=True)
        vm.wait(lambda: events(accepted))
        (found,) = events(accepted)
    assert found["payload"]["event"]["event_id"] == event
    assert (found["payload"]["change"], found["payload"]["reported_by"]) == ("appeared", "hook_runner")
    assert "t0ken" not in json.dumps(found)


@pytest.mark.parametrize("wrong", ["token", "hmac_secret"])
def test_the_webhook_refuses_a_wrong_secret_and_nothing_is_lost(
    azure: Azure, make_daemon: MakeDaemon, tmp_path: Path, wrong: str
) -> None:
    port = free_port()
    vm = make_daemon(push_url=f"http://127.0.0.1:{port}/endpoint")
    token, hmac = secret(vm, "token", "t0ken"), secret(vm, "hmac", "k3y")
    vm.harness.configure(push_token_file=token, push_hmac_file=hmac)
    with webhook(tmp_path, port, **{"token": "t0ken", "hmac_secret": "k3y", wrong: "another"}) as accepted:
        vm.start()
        azure.schedule("Reboot", hold=True)
        vm.wait(lambda: "answered 401" in (vm.data("status")[1]["push"]["error"] or ""))
        assert events(accepted) == []
        secret(vm, "token" if wrong == "token" else "hmac", "another")
        vm.wait(lambda: len(events(accepted)) == 1)
