# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The modules with their defaults, against 169.254.169.254:80."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.ansible_hosts import Hosts
from support.network import IMDS, at_imds_address
from support.repository import REPOSITORY
from support.simulator_process import start

pytestmark = pytest.mark.all


@pytest.fixture
def hosts(tmp_path: Path) -> Hosts:
    """A host ``web`` behind a proxy, which must not be used for IMDS."""
    found = Hosts(tmp_path, {"web": {}})
    found.environment["http_proxy"] = "http://127.0.0.1:9"
    return found


def test_every_module_needs_no_option_for_the_address_nor_for_receipts(hosts: Hosts) -> None:
    scenario = {"groups": {"single": {"vms": ["vm1"]}}, "knobs": {"rate_limit": 0}}
    with at_imds_address(), start(scenario, listen=IMDS + ":80") as azure:
        event = {"type": "Reboot", "resources": ["vm1"], "source": "User", "hold": True}
        event_id = azure.post("/events", event)["id"]
        info = hosts.module("web", "event_info")
        assert info["resource_name"] == "vm1" and [each["event_id"] for each in info["events"]] == [event_id]
        assert hosts.module("web", "event_facts")["ansible_facts"]["azure_scheduled_events"]["pending"] is True
        assert hosts.module("web", "event_wait", state="scheduled")["outcome"] == "reached"
        first, again = (hosts.module("web", "event_approve", policy="documented") for _run in range(2))
        assert first["approved"] == [event_id] and (first["changed"], again["changed"]) == (True, False)
        assert event_id in Path("/run/azure-scheduled-events/approvals/receipts.json").read_text()
        azure.post(f"/events/{event_id}/approve", {"as": "other-tenants"})
        assert hosts.module("web", "event_wait", state="started", timeout=60)["outcome"] == "reached"
        azure.post(f"/events/{event_id}/complete")
        assert hosts.module("web", "event_wait", state="absent", timeout=60)["outcome"] == "reached"


@pytest.mark.parametrize("name", ["event_facts", "event_info"])
def test_an_address_without_a_server_costs_no_more_than_is_documented(
    unroutable: None, hosts: Hosts, name: str
) -> None:
    started = time.monotonic()
    assert "no connection" in json.dumps(hosts.module("web", name, endpoint="http://127.0.0.1:9"))
    # the time of Ansible itself, which depends on how busy the machine is
    overhead = time.monotonic() - started
    started = time.monotonic()
    result = hosts.module("web", name)
    assert time.monotonic() - started < 5 + 3 + 5 * overhead
    assert "no connection" in json.dumps(result)


NAMED = "168.63.129.16"


def after_dhcp(program: str) -> list[str]:
    """Return the command that runs a program of Python, with the helper, where systemd-networkd has left a lease."""
    shell = (
        "mount -t tmpfs tmpfs /run && mkdir -p /run/systemd/netif/leases"
        " && echo OPTION_245=a83f8110 > /run/systemd/netif/leases/2"
        f' && export PYTHONPATH={REPOSITORY / "plugins/module_utils"} && exec "$@"'
    )
    return ["unshare", "--mount", "sh", "-c", shell, "sh", sys.executable, "-c", program]


AUTO = """
from azure_scheduled_events import Imds
imds = Imds("auto")
print(len(imds.events().events), imds.endpoint)
"""


@pytest.mark.parametrize("port", [80, 8080])
def test_auto_finds_the_address_that_dhcp_named(port: int) -> None:
    with at_imds_address(NAMED), start(listen=f"{NAMED}:{port}"):
        done = subprocess.run(after_dhcp(AUTO), stdout=subprocess.PIPE, text=True, timeout=120, check=True)
    assert done.stdout == f"0 http://{NAMED}" + ("\n" if port == 80 else ":8080\n")


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


def test_auto_leaves_a_server_that_is_not_imds() -> None:
    command = after_dhcp(SECOND_POLL)
    with at_imds_address(), at_imds_address(NAMED), start(listen=f"{NAMED}:80") as other:
        other.post("/faults", {"kind": "not-found"})
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as asking:
            assert asking.stdout is not None
            assert asking.stdout.readline().strip() == f"http://{NAMED}"
            with start(listen=IMDS + ":80"):
                second, _errors = asking.communicate("\n", timeout=120)
    assert second.split() == ["0", f"http://{IMDS}"]
