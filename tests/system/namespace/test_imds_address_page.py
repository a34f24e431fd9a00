# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""docs/simulator/imds-address.md as printed."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import simulator_process
from support.ansible_hosts import Hosts
from support.daemon.documents import shape
from support.network import IMDS
from support.recipes.printed import is_shown
from support.repository import REPOSITORY

pytestmark = pytest.mark.all

PAGE = (REPOSITORY / "docs" / "simulator" / "imds-address.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """The console script on PATH, the collection, and its libraries."""
    program = tmp_path / "bin" / "imds-simulator"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m imds_simulator "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    found = {**simulator_process.environment(), **Hosts(tmp_path, {}).environment}
    found["PYTHONPATH"] = simulator_process.environment()["PYTHONPATH"]
    path = f"{program.parent}:{Path(sys.executable).parent}:{found['PATH']}"
    return {**found, "PATH": path}


@pytest.fixture(autouse=True)
def no_address() -> Iterator[None]:
    """No test leaves the address."""
    yield
    subprocess.run(["ip", "address", "delete", f"{IMDS}/32", "dev", "lo"], capture_output=True, check=False)


def run(script: str, environment: dict[str, str], folder: Path) -> str:
    done = subprocess.run(
        ["sh", "-ec", script], env=environment, cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_commands_run_in_a_network_of_their_own(environment: dict[str, str], tmp_path: Path) -> None:
    document, more = [each for each in blocks("bash") if "--imds-address" in each][:2]
    assert "Events" in json.loads(run(document, environment, tmp_path))
    output = run(more, environment, tmp_path)
    assert '"EventType":"Redeploy"' in output and '"resource_name": "vm1"' in output


def test_handlers_of_a_group_run_at_the_addresses_of_their_vms(environment: dict[str, str], tmp_path: Path) -> None:
    (group,) = [each for each in blocks("bash") if "imds-simulator join" in each]
    (printed,) = blocks("text")
    output = run(group, environment, tmp_path)
    assert is_shown(shape(output), shape(printed)), output
    assert "web_1 note recovered" in output
    assert all(f"{vm} GET scheduledevents 200" in output for vm in ("web_0", "web_1", "web_2"))


def test_a_script_waits_until_the_simulator_serves(environment: dict[str, str], tmp_path: Path) -> None:
    (line,) = re.findall(r"`(until curl .*)`", PAGE)
    url = "http://127.0.0.1:8168"
    assert url in line
    script = line.replace(url, '"$IMDS_SIMULATOR_CONTROL"')
    assert run(f"imds-simulator exec --quiet -- sh -ec {shlex.quote(script)}", environment, tmp_path)


@pytest.mark.parametrize(
    "prefix",
    [
        # as pasta does it: a user who is root in namespaces of the own
        "unshare --user --map-root-user --net",
        # root in a container that has only this capability in addition
        "setpriv --bounding-set=-all,+net_admin,+net_bind_service --inh-caps=-all",
    ],
    ids=["user-namespace", "container"],
)
def test_the_address_on_lo_needs_few_rights(prefix: str, environment: dict[str, str], tmp_path: Path) -> None:
    (added,) = [each for each in blocks("bash") if "address add" in each]
    script = f"ip link set lo up\n{added}ip address show dev lo >left"
    assert "Events" in json.loads(run(f"{prefix} sh -ec {shlex.quote(script)}", environment, tmp_path))
    assert IMDS not in (tmp_path / "left").read_text()


def test_a_container_that_starts_again_in_its_network_has_the_address_already(
    environment: dict[str, str], tmp_path: Path
) -> None:
    (dockerfile,) = blocks("dockerfile")
    variables = re.findall(r"^ENV (.*)$", dockerfile, re.MULTILINE)
    (entry,) = re.findall(r"^ENTRYPOINT (.*)$", dockerfile, re.MULTILINE)
    start = shlex.join(["env", *variables, *json.loads(entry), "exec", "--quiet", "--", "echo", "started"])
    script = f"ip link set lo up\n{start}\n{start}"
    output = run(f"unshare --user --map-root-user --net sh -ec {shlex.quote(script)}", environment, tmp_path)
    assert output.split() == ["started", "started"]


def test_all_programs_use_the_address(environment: dict[str, str], tmp_path: Path) -> None:
    (setting,) = re.findall(r"`(sysctl \S+)`", PAGE)
    run(f"ip address add {IMDS}/32 dev lo\n{setting}", environment, tmp_path)
    (shown,) = [each for each in blocks("console") if "--listen 169" in each]
    command = shlex.split(shown.splitlines()[0].lstrip("$ "))
    # without any capability, which the setting makes unnecessary
    command = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", *command]
    with subprocess.Popen(command, env=environment, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as simulator:
        assert simulator.stdout is not None
        try:
            lines = [simulator.stdout.readline().rstrip("\n") for _line in range(2)]
            assert lines == shown.splitlines()[1:]
            url = f"http://{IMDS}/metadata/scheduledevents?api-version=2020-07-01"
            assert "Events" in run(f'curl -fsS -H Metadata:true "{url}"', environment, tmp_path)
        finally:
            simulator.terminate()
    run("sysctl net.ipv4.ip_unprivileged_port_start=1024", environment, tmp_path)
