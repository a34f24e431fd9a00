# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The modules with their defaults, against 169.254.169.254:80."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.ansible_hosts import Hosts
from support.network import IMDS, at_imds_address
from support.repository import REPOSITORY
from support.simulator_process import Simulator, start

pytestmark = pytest.mark.all


@pytest.fixture
def hosts(tmp_path: Path) -> Hosts:
    """A host ``web`` behind a proxy, which must not be used for IMDS."""
    found = Hosts(tmp_path, {"web": {}})
    found.environment["http_proxy"] = "http://127.0.0.1:9"
    return found


def test_every_module_needs_no_option_for_the_address(azure: Simulator, hosts: Hosts, tmp_path: Path) -> None:
    event_id = azure.post("/events", {"type": "Reboot", "resources": ["vm1"], "source": "User"})["id"]
    info = hosts.module("web", "event_info")
    assert info["resource_name"] == "vm1" and [event["event_id"] for event in info["events"]] == [event_id]
    assert hosts.module("web", "event_facts")["ansible_facts"]["azure_scheduled_events"]["pending"] is True
    assert hosts.module("web", "event_wait", state="scheduled")["outcome"] == "reached"
    approved = hosts.module("web", "event_approve", policy="documented", receipts=str(tmp_path / "receipts"))
    assert approved["approved"] == [event_id]
    assert hosts.module("web", "event_wait", state="started", timeout=60)["outcome"] == "reached"
    azure.post(f"/events/{event_id}/complete")
    assert hosts.module("web", "event_wait", state="absent", timeout=60)["outcome"] == "reached"


def test_receipts_are_kept_below_run_by_default(azure: Simulator, hosts: Hosts) -> None:
    event_id = azure.post("/events", {"type": "Reboot", "resources": ["vm1"]})["id"]
    azure.post("/knobs", {"start_delay": 600})
    try:
        assert hosts.module("web", "event_approve", event_ids=[event_id])["changed"] is True
        assert hosts.module("web", "event_approve", event_ids=[event_id])["changed"] is False
        assert event_id in Path("/run/azure-scheduled-events/approvals/receipts.json").read_text()
    finally:
        azure.post(f"/events/{event_id}/cancel")


@pytest.mark.parametrize("name, bound", [("event_facts", 5), ("event_info", 5)])
def test_an_address_without_a_server_costs_no_more_than_is_documented(
    unroutable: None, hosts: Hosts, name: str, bound: float
) -> None:
    started = time.monotonic()
    assert "no connection" in json.dumps(hosts.module("web", name, endpoint="http://127.0.0.1:9"))
    # the time of Ansible itself, which depends on how busy the machine is
    overhead = time.monotonic() - started
    started = time.monotonic()
    result = hosts.module("web", name)
    assert time.monotonic() - started < bound + 3 + 5 * overhead
    assert "no connection" in json.dumps(result)


def in_private_mounts(shell: str, program: str, *arguments: str) -> list[str]:
    """Return the command that runs a program of Python, with the helper, after a line of the shell."""
    start_program = f'export PYTHONPATH={REPOSITORY / "plugins/module_utils"} && {shell} && exec "$@"'
    return ["unshare", "--mount", "sh", "-c", start_program, "sh", sys.executable, "-c", program, *arguments]


def output(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout.strip()


# a private /run, in which systemd-networkd has left a lease
LEASE = (
    "mount -t tmpfs tmpfs /run && mkdir -p /run/systemd/netif/leases"
    " && echo OPTION_245=a83f8110 > /run/systemd/netif/leases/2"
)
NAMED = "168.63.129.16"
AUTO = """
from azure_scheduled_events import Imds
imds = Imds("auto")
print(len(imds.events().events), imds.endpoint)
"""


@pytest.fixture
def named_address() -> Iterator[None]:
    """The address that DHCP named, on lo."""
    with at_imds_address(NAMED):
        yield


@pytest.mark.usefixtures("named_address")
@pytest.mark.parametrize("port", [80, 8080])
def test_auto_finds_the_address_that_dhcp_named(port: int) -> None:
    with start(listen=f"{NAMED}:{port}"):
        assert output(in_private_mounts(LEASE, AUTO)) == f"0 http://{NAMED}" + ("" if port == 80 else ":8080")


SECOND_POLL = """
import sys
from azure_scheduled_events import Imds, ImdsRefused
imds = Imds("auto")
try:
    imds.events()
except ImdsRefused:
    print(imds.endpoint, flush=True)
sys.stdin.readline()
print(len(imds.events().events), imds.endpoint)
"""


@pytest.mark.usefixtures("named_address")
def test_auto_leaves_a_server_that_is_not_imds() -> None:
    command = in_private_mounts(LEASE, SECOND_POLL)
    with at_imds_address(), start(listen=f"{NAMED}:80") as other:
        other.post("/faults", {"kind": "not-found"})
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as asking:
            assert asking.stdout is not None
            assert asking.stdout.readline().strip() == f"http://{NAMED}"
            with start(listen=IMDS + ":80"):
                second, _errors = asking.communicate("\n", timeout=120)
    assert second.split() == ["0", f"http://{IMDS}"]


FULL = """
import os, sys
from azure_scheduled_events.receipts import Receipts
folder = sys.argv[1]
with open(os.path.join(folder, "ballast"), "wb") as ballast:
    try:
        ballast.write(b"x" * 1000000)
        ballast.flush()
    except OSError:
        pass
try:
    Receipts(folder, "http://127.0.0.1").write("A", "2026-11-21T12:00:00Z")
except OSError as error:
    print(error.strerror, sorted(os.listdir(folder)), Receipts(folder, "http://127.0.0.1").find("A"), flush=True)
os._exit(0)
"""


def test_a_full_disk_leaves_no_half_receipt(tmp_path: Path) -> None:
    mount = f"mount -t tmpfs -o size=64k,mode=755 tmpfs {tmp_path}"
    assert output(in_private_mounts(mount, FULL, str(tmp_path))) == "No space left on device ['ballast'] None"
