# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The modules with nothing but their defaults, against 169.254.169.254:80."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from azure_scheduled_events import Imds, ImdsUnreachable
from network import IMDS, REPOSITORY, ip
from simulator_process import Simulator, start

MODULES = "azure_imds.scheduled_events."


class Host:
    """This machine as Ansible's only host."""

    def __init__(self, collections: Path, folder: Path) -> None:
        self.folder = folder
        self.environment = {
            **os.environ,
            "ANSIBLE_COLLECTIONS_PATH": str(collections),
            "ANSIBLE_STDOUT_CALLBACK": "ansible.builtin.default",
            "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_HOME": str(folder / "ansible"),
            # as on any VM behind a company's proxy, which IMDS must never be asked through
            "http_proxy": "http://127.0.0.1:9",
        }
        self.inventory = "web,"
        self.variables = json.dumps({"ansible_connection": "local", "ansible_python_interpreter": sys.executable})

    def run(self, program: str, *words: str) -> subprocess.CompletedProcess[str]:
        command = [str(Path(sys.executable).with_name(program)), "-i", self.inventory, "-e", self.variables, *words]
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=120, check=False)

    def module(self, name: str, **options: Any) -> dict[str, Any]:
        """Run one module; its result."""
        given = ["-a", json.dumps(options)] if options else []
        ran = self.run("ansible", "web", "-m", MODULES + name, *given)
        match = re.search(r"web \| \w+!? => (\{.*\})", ran.stdout, re.DOTALL)
        assert match, ran.stdout + ran.stderr
        result: dict[str, Any] = json.loads(match.group(1))
        return result


@pytest.fixture
def host(collections: Path, tmp_path: Path) -> Host:
    return Host(collections, tmp_path)


def test_every_module_needs_no_option_for_the_address(azure: Simulator, host: Host, tmp_path: Path) -> None:
    event_id = azure.post("/events", {"type": "Reboot", "resources": ["vm1"], "source": "User"})["id"]
    info = host.module("event_info")
    assert info["resource_name"] == "vm1" and [event["event_id"] for event in info["events"]] == [event_id]
    assert host.module("event_facts")["ansible_facts"]["azure_scheduled_events"]["pending"] is True
    assert host.module("event_wait", state="scheduled")["outcome"] == "reached"
    approved = host.module("event_approve", policy="documented", receipts=str(tmp_path / "receipts"))
    assert approved["approved"] == [event_id]
    assert host.module("event_wait", state="started", timeout=20)["outcome"] == "reached"
    azure.post("/events/%s/complete" % event_id)
    assert host.module("event_wait", state="absent", timeout=20)["outcome"] == "reached"


def test_receipts_are_kept_below_run_by_default(azure: Simulator, collections: Path, host: Host) -> None:
    event_id = azure.post("/events", {"type": "Reboot", "resources": ["vm1"]})["id"]
    azure.post("/knobs", {"start_delay": 600})
    folder = Path("/run/azure-scheduled-events/approvals")
    present = set(folder.glob("*.json"))
    try:
        assert host.module("event_approve", event_ids=[event_id])["changed"] is True
        assert host.module("event_approve", event_ids=[event_id])["changed"] is False
        assert len(set(folder.glob("*.json")) - present) == 1
    finally:
        azure.post("/events/%s/cancel" % event_id)
        host.module("event_approve", event_ids=[event_id])
    assert set(folder.glob("*.json")) <= present


def test_the_playbook_at_the_top_of_the_readme_works_as_it_stands(azure: Simulator, host: Host, tmp_path: Path) -> None:
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    text = re.findall(r"^```yaml\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)[0]
    for program in ("leave-load-balancer", "join-load-balancer"):
        tool = tmp_path / program
        tool.write_text("#!/bin/sh\necho %s >> %s\n" % (program, tmp_path / "did"))
        tool.chmod(0o755)
    playbook = tmp_path / "playbook.yml"
    playbook.write_text(text.replace("/usr/local/bin/", "%s/" % tmp_path))
    azure.post("/events", {"type": "Freeze", "resources": ["vm1"], "notice": "5m", "started_for": "2s"})
    ran = host.run("ansible-playbook", str(playbook))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert (tmp_path / "did").read_text().split() == ["leave-load-balancer", "join-load-balancer"]
    approvals = [line for line in azure.get("/log")["lines"] if line["what"] == "approval"]
    assert [line["status"] for line in approvals] == [200]


@pytest.mark.parametrize("name, bound", [("event_facts", 5), ("event_info", 5)])
def test_an_address_that_nobody_answers_at_costs_no_more_than_is_documented(unroutable: None, host: Host, name: str, bound: float) -> None:
    started = time.monotonic()
    result = host.module(name)
    assert time.monotonic() - started < bound + 3
    assert "no connection" in json.dumps(result)


def test_a_connection_is_given_up_after_three_seconds(unroutable: None) -> None:
    started = time.monotonic()
    with pytest.raises(ImdsUnreachable, match="no connection") as caught:
        Imds().instance()
    assert time.monotonic() - started < 3.5 and not caught.value.connected


def test_without_any_network_the_facts_say_so_at_once(host: Host) -> None:
    facts = host.module("event_facts")["ansible_facts"]["azure_scheduled_events"]
    assert facts["available"] is False and "no connection" in facts["reason"]


AUTO = """
import sys
sys.path.insert(0, %r)
from azure_scheduled_events import Imds
imds = Imds("auto")
print(len(imds.events().events), imds.endpoint)
"""


@pytest.mark.parametrize("port", [80, 8080])
def test_auto_finds_the_address_that_dhcp_named(tmp_path: Path, port: int) -> None:
    script = tmp_path / "auto.py"
    script.write_text(AUTO % str(REPOSITORY / "plugins/module_utils"))
    # a /run of this process alone, in which systemd-networkd has left a lease
    lease = "mount -t tmpfs tmpfs /run && mkdir -p /run/systemd/netif/leases && echo OPTION_245=a83f8110 > /run/systemd/netif/leases/2"
    ip("address", "add", "168.63.129.16/32", "dev", "lo")
    try:
        with start(listen="168.63.129.16:%d" % port):
            command = ["unshare", "--mount", "sh", "-c", "%s && exec %s %s" % (lease, sys.executable, script)]
            found = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout.split()
    finally:
        ip("address", "delete", "168.63.129.16/32", "dev", "lo")
    assert found == ["0", "http://168.63.129.16" + ("" if port == 80 else ":8080")]


def test_auto_prefers_the_usual_address(azure: Simulator, tmp_path: Path) -> None:
    script = tmp_path / "auto.py"
    script.write_text(AUTO % str(REPOSITORY / "plugins/module_utils"))
    found = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=30, check=True).stdout.split()
    assert found == ["0", "http://" + IMDS]
