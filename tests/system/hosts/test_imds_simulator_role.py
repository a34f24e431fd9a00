# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The role imds_simulator on a real host, from installation to removal; each test continues from the one before."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.ansible_hosts import Hosts
from support.hosts.ansible_inventory import Applied, ansible_on, apply_role
from support.hosts.bridge import IMDS
from support.hosts.host import Host
from support.hosts.lab import Lab
from support.wait import wait_until

pytestmark = pytest.mark.all

SERVICE = "imds-simulator.service"
ENDPOINT = "http://127.0.0.1:8169"
SCENARIO = """\
groups:
  single:
    kind: standalone
    vms:
      vm1: {}
events:
  - name: update
    at: 0s
    type: Reboot
    resources: [vm1]
    description: first scenario
"""
BAD_SCENARIO = SCENARIO.replace("type: Reboot", "type: Rebuut")
BAD_LINE = 1 + BAD_SCENARIO.splitlines().index("    type: Rebuut")


class SimulatorHost:
    """One host, the role on it, and queries of an administrator."""

    def __init__(self, host: Host, ansible: Hosts, folder: Path) -> None:
        self.host = host
        self._ansible, self._folder = ansible, folder
        self.scenario = folder / "site.yaml"

    def apply(self, *words: str, content: str = SCENARIO, **variables: Any) -> Applied:
        """Apply the role; ``words`` are for ansible-playbook, ``variables`` those of the role without their prefix.

        ``content`` is that of the scenario file, unless ``variables`` set a scenario.
        """
        self.scenario.write_text(content, encoding="utf-8")
        given: dict[str, Any] = {"install_packages": False, **variables}
        if not {"scenario", "scenario_content"} & given.keys():
            given["scenario_file"] = str(self.scenario)
        return apply_role(self._ansible, self._folder, "imds_simulator", given, *words)

    def event_info(self, **options: Any) -> dict[str, Any]:
        return self._ansible.module(self.host.name, "event_info", **{"timeout": 20, **options})

    def descriptions(self, **options: Any) -> list[str]:
        result = self.event_info(**options)
        assert "events" in result, result
        return [event["description"] for event in result["events"]]

    def unit(self, name: str) -> str:
        """Return a property of the unit."""
        return self.host.run(["systemctl", "show", "--value", "--property", name, SERVICE]).stdout.strip()

    def process(self) -> str:
        return self.unit("MainPID")

    def has_link_local_address(self) -> bool:
        addresses = json.loads(self.host.run(["ip", "-json", "address", "show", "dev", "lo"]).stdout)[0]["addr_info"]
        return IMDS in [address["local"] for address in addresses]

    def installed(self) -> list[str]:
        return self.host.run(["find", "/etc/systemd/system", "/opt", "-name", "*imds*", "-print"]).stdout.split()


@pytest.fixture(scope="module")
def site(lab: Lab, folder: Path) -> SimulatorHost:
    vm1 = lab.host("vm1")
    return SimulatorHost(vm1, ansible_on({vm1.name: vm1}, folder), folder)


def test_check_mode_on_a_fresh_host_changes_nothing(site: SimulatorHost) -> None:
    before = site.installed()
    check = site.apply("--check", "--diff")
    assert check.status == 0, check.text
    assert check.changed > 0
    assert site.installed() == before == []


def test_first_run_installs_and_starts(site: SimulatorHost) -> None:
    first = site.apply(install_packages=True)
    assert first.status == 0, first.text
    assert first.changed > 0
    assert (site.unit("ActiveState"), site.unit("UnitFileState")) == ("active", "enabled")
    assert site.descriptions(endpoint=ENDPOINT) == ["first scenario"]


def test_second_run_changes_nothing(site: SimulatorHost) -> None:
    process = site.process()
    second = site.apply(install_packages=True)
    assert (second.status, second.changed_tasks, second.changed) == (0, [], 0), second.text
    assert site.process() == process


def test_service_is_sandboxed(site: SimulatorHost) -> None:
    assert [site.unit(name) for name in ("DynamicUser", "NoNewPrivileges", "ProtectSystem")] == ["yes", "yes", "strict"]
    assert site.host.run(["ps", "-o", "user=", "-p", site.process()]).stdout.strip() != "root"
    assert site.host.run(["systemd-analyze", "verify", SERVICE]).stderr == ""


@pytest.mark.parametrize(
    "variables, said",
    [
        ({"content": BAD_SCENARIO}, f":{BAD_LINE}: events[0].type: 'Rebuut' is not one of"),
        (
            {"scenario": "live-migration", "vms": "vm1", "scenario_content": {"title": "two"}},
            "set one of imds_simulator_scenario (a shipped name)",
        ),
        ({"scenario": "life-migration"}, "life-migration: no such file, and no shipped scenario of that name"),
    ],
    ids=["content", "two scenarios", "name"],
)
def test_invalid_variables_are_refused_and_the_service_continues(
    site: SimulatorHost, variables: dict[str, Any], said: str
) -> None:
    process = site.process()
    refused = site.apply(**variables)
    assert refused.status != 0
    assert said in " ".join(refused.text.split()), refused.text
    assert site.process() == process and site.descriptions(endpoint=ENDPOINT) == ["first scenario"]


def test_changed_scenario_restarts(site: SimulatorHost) -> None:
    process = site.process()
    changed = site.apply(content=SCENARIO.replace("first", "second"))
    assert changed.changed_tasks == ["Copy the scenario", "Restart the simulator"], changed.text
    assert site.process() != process
    assert site.descriptions(endpoint=ENDPOINT) == ["second scenario"]


def test_link_local_address_is_added(site: SimulatorHost) -> None:
    changed = site.apply(content=SCENARIO.replace("first", "second"), alias_address=True, listen=f"{IMDS}:80")
    assert changed.changed_tasks == [
        "Install the unit file",
        "Stop the simulator with its old unit",
        "Start the simulator",
    ], changed.text
    assert site.has_link_local_address()
    assert site.descriptions() == ["second scenario"]


def test_link_local_address_is_present_after_a_reboot_and_a_crash(site: SimulatorHost) -> None:
    site.host.reboot()
    assert site.descriptions() == ["second scenario"]
    site.host.crash()
    site.host.boot()
    assert site.descriptions() == ["second scenario"]


def test_control_api_uses_its_token(site: SimulatorHost) -> None:
    token, file = 'it\'s"$HOME"`\\', "/opt/imds-simulator/tokens.env"
    variables = {"alias_address": True, "listen": f"{IMDS}:80"}
    content = SCENARIO.replace("first", "second")
    changed = site.apply(content=content, control_token=token, **variables)
    assert changed.status == 0, changed.text
    assert site.host.run(["stat", "--format=%U %a", file]).stdout.split() == ["root", "600"]
    environment = site.host.run(["cat", f"/proc/{site.process()}/environ"]).stdout.split("\0")
    assert [line for line in environment if "TOKEN" in line] == [f"IMDS_SIMULATOR_CONTROL_TOKEN={token}"]
    state = ["env", "PYTHONPATH=/opt/imds-simulator", "python3", "-m", "imds_simulator", "state"]
    statuses = [site.host.run([*state, *more], check=False).returncode for more in ([], ["--control-token", token])]
    assert statuses == [1, 0]
    assert token not in site.host.run(["ps", "-A", "-o", "args"]).stdout
    again = site.apply(content=content, **variables)
    assert "Remove an old token" in again.changed_tasks, again.text
    assert file not in site.host.run(["find", "/opt/imds-simulator"]).stdout.split()


def test_killed_simulator_is_restarted(site: SimulatorHost) -> None:
    site.host.run(["systemctl", "kill", "--signal=KILL", "--kill-who=main", SERVICE])
    wait_until(lambda: (site.unit("SubState"), site.unit("NRestarts")) == ("running", "1"), "another process")
    assert site.descriptions() == ["second scenario"]


def test_simulator_that_exits_at_once_fails_the_role_and_an_unset_address_is_removed(site: SimulatorHost) -> None:
    failed = site.apply(knobs={"no_such_knob": 1})
    assert failed.status != 0
    said = failed.text.partition(
        "the simulator does not answer at http://127.0.0.1:8168; correct what its log reports: "
    )[2]
    assert "no_such_knob" in said, failed.text
    # this application does not set the variable
    assert not site.has_link_local_address()


def test_absent_leaves_nothing_and_changes_nothing_again(site: SimulatorHost) -> None:
    check = site.apply("--check", state="absent")
    assert check.status == 0 and site.installed() != [], check.text
    gone = site.apply(state="absent")
    assert gone.status == 0, gone.text
    assert gone.changed_tasks == ["Stop the simulator", "Remove the unit file", "Remove the simulator"]
    assert site.installed() == []
    assert (site.unit("LoadState"), site.unit("ActiveState")) == ("not-found", "inactive")
    again = site.apply(state="absent")
    assert (again.status, again.changed_tasks, again.changed) == (0, [], 0), again.text
