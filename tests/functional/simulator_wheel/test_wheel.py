# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The wheel of the simulator: built, installed by pip on the oldest Python, and used outside of the checkout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from support.environments import environment, first_python, make_environment
from support.interpreters import find_python
from support.repository import REPOSITORY

pytestmark = pytest.mark.all

PACKAGE = REPOSITORY / "roles" / "imds_simulator" / "files"
PROJECT = tomllib.loads((PACKAGE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
OLDEST = int(PROJECT["requires-python"].rpartition(".")[2])
# tests of the protocol for other libraries
PROTOCOL = ["cli/test_commands.py", "protocol", "recording/test_replay_command.py", "server"]
NEWEST = ["click", "PyYAML"]
# reads the address that the simulator of exec prepared, and changes its state by a verb
CLIENT = """
import json, os, subprocess, sys, urllib.request
url = os.environ["IMDS_SIMULATOR_ENDPOINT"] + "/metadata/scheduledevents?api-version=2020-07-01"
direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
subprocess.run(["imds-simulator", "schedule", "--type", "Freeze", "--resources", "vm1"], check=True, stdout=2)
answer = direct.open(urllib.request.Request(url, headers={"Metadata": "true"}), timeout=60)
print(json.dumps([url, json.load(answer)["Events"][0]["EventType"]]))
"""
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    before = files_of_checkout()
    command = [sys.executable, "-m", "pip", "wheel", "-qq", "--no-deps", "--wheel-dir", str(folder), str(PACKAGE)]
    subprocess.run(command, check=True)
    assert files_of_checkout() == before
    (built,) = folder.glob("*.whl")
    return built


def files_of_checkout() -> set[Path]:
    return {file for file in PACKAGE.rglob("*") if "__pycache__" not in file.parts}


@pytest.fixture(scope="module")
def run(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Run the installed console script in an empty folder, with the oldest Python."""
    venv = tmp_path_factory.mktemp("venv")
    make_environment(first_python(range(OLDEST, sys.version_info[1] + 1)), venv, wheel)
    empty = tmp_path_factory.mktemp("empty")
    own = {"PATH": f"{venv / 'bin'}:{os.environ['PATH']}", "HOME": str(empty), "LC_ALL": "C.UTF-8"}

    def call(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(arguments, env=own, cwd=empty, capture_output=True, text=True, timeout=300, check=False)

    return call


def test_wheel_has_every_file_of_the_package_and_no_other(wheel: Path) -> None:
    package = {str(file.relative_to(PACKAGE)) for file in files_of_checkout() if file.is_file()}
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert names == {name for name in package if "/" in name}
    assert {"imds_simulator/scenario/library/user-reboot.yaml", "imds_simulator/py.typed"} <= names


def test_wheel_has_the_version_of_the_collection(wheel: Path, run: Run) -> None:
    version = yaml.safe_load((REPOSITORY / "galaxy.yml").read_text(encoding="utf-8"))["version"]
    assert wheel.name == f"azure_imds_simulator-{version}-py3-none-any.whl"
    assert run("imds-simulator", "--version").stdout == f"imds-simulator {version}\n"
    assert run("python", "-m", "imds_simulator", "--version").stdout == f"imds_simulator {version}\n"


def test_messages_name_the_program_that_was_started(run: Run) -> None:
    done = run("imds-simulator", "exec", "--speed", "0", "--", "true")
    assert (done.returncode, done.stderr) == (
        2,
        "imds-simulator: --speed: 0 is not a finite number of at least 0.000001\n",
    )
    assert run("imds-simulator", "stat").stderr.startswith("imds-simulator: there is no verb stat")


def test_simulator_for_tests_starts_with_a_shipped_scenario(run: Run) -> None:
    program = "from imds_simulator.testing import Simulator\nwith Simulator('zones') as imds: print(*imds.endpoints)"
    assert run("python", "-c", program).stdout == "pool_0 pool_1 pool_2\n"


@pytest.mark.parametrize("options", [(), ("--imds-address",)], ids=["its-own-address", "imds-address"])
def test_exec_serves_a_command_and_its_verbs(run: Run, options: tuple[str, ...]) -> None:
    done = run("imds-simulator", "exec", *options, "--quiet", "--", "python", "-c", CLIENT)
    assert done.returncode == 0, done.stderr
    url, kind = json.loads(done.stdout)
    assert kind == "Freeze"
    assert url.startswith("http://169.254.169.254/" if options else "http://127.0.0.1:")


@pytest.mark.parametrize(
    "minor, libraries",
    [
        (OLDEST, [each.replace(">=", "==") for each in PROJECT["dependencies"]]),
        (11, ["aiohttp==3.8.4", *NEWEST]),
        (13, ["aiohttp==3.11.16", *NEWEST]),
    ],
    ids=["oldest", "bookworm", "trixie"],
)
def test_simulator_is_the_same_with_these_libraries(minor: int, libraries: list[str]) -> None:
    found = find_python(minor)
    if found is None:
        pytest.skip(f"there is no Python 3.{minor}")
    python = environment("simulator", found, "pytest", *libraries) / "bin" / "python"
    tests = [REPOSITORY / "tests/unit/imds_simulator" / each for each in PROTOCOL]
    ran = subprocess.run([python, "-m", "pytest", "-q", *tests], cwd=REPOSITORY, check=False)
    assert ran.returncode == 0
