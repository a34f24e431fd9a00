# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The event modules return the same on Windows hosts as on Linux, over a stand-in for the connection."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from support import simulator_process
from support.ansible_hosts import Hosts
from support.module_play import Run, run_modules
from support.windows_hosts.host import WindowsHost, environment

# the fixture of this file runs one play for all of its tests
pytestmark = pytest.mark.xdist_group("windows_same_results")

CASES: list[tuple[str, dict[str, Any]]] = [
    ("event_info", {}),
    ("event_info", {"affects": ["vm2"], "api_version": ["1999-01-01", "2020-07-01"]}),
    ("event_info", {"api_version": ["1999-01-01"]}),
    ("event_info", {"statuses": ["Schduled"]}),
    ("event_info", {"timeout": 0}),
    ("event_facts", {}),
    ("event_wait", {}),
    ("event_wait", {"state": "started", "timeout": 0.2}),
    ("event_wait", {"poll_interval": 0.1}),
    ("event_approve", {"types": ["Reboot"]}),
    ("event_approve", {"policy": "documented"}),
    ("event_approve", {"policy": {"rules": [{"approve": "soon"}]}}),
]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, dict[str, Any]]]:
    """The results of each host, by the number of the case."""
    folder = tmp_path_factory.mktemp("windows-same-results")
    hosts = Hosts(folder, {"lin1": {}, "win1": WindowsHost(folder / "win1").variables})
    hosts.environment.update(environment())
    receipts = {"event_approve": {"receipts": str(folder / "receipts")}}
    scenario = {
        "groups": {"web": {"kind": "availability_set", "vms": {"vm1": {}, "vm2": {}}}},
        "events": [{"type": "Reboot", "resources": ["vm1"], "source": "User"}],
        "knobs": {"rate_limit": 0},
    }
    with simulator_process.start(scenario, args=["--clock", "manual"]) as azure:
        given = {"endpoint": azure.endpoints["vm1"]}
        runs = {
            f"case {number}": Run(module, {**given, **receipts.get(module, {}), **options}, {"check_mode": True})
            for number, (module, options) in enumerate(CASES)
        }
        yield run_modules(hosts, folder, runs)


def comparable(result: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in result.items() if name not in ("elapsed", "invocation")}


@pytest.mark.parametrize("number", range(len(CASES)), ids=lambda number: "{} {}".format(*CASES[number]))
def test_module_returns_the_same_as_on_linux(results: dict[str, dict[str, Any]], number: int) -> None:
    linux, windows = (comparable(results[host][f"case {number}"]) for host in ("lin1", "win1"))
    assert windows == linux
