# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The modules with their defaults, against 169.254.169.254:80."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from support.ansible_hosts import Hosts
from support.network import IMDS, at_imds_address
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
        assert event_id.casefold() in Path("/run/azure-scheduled-events/approvals/receipts.json").read_text()
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
