# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Windows programs under Wine, and a minion among them, in a network namespace where IMDS has its own address."""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from support import simulator_process
from support.network import IMDS, at_imds_address, start_loopback
from support.repository import REPOSITORY
from support.salt.azure import Azure
from support.salt.cluster import Cluster, cluster
from support.salt.salt_installation import SaltInstallation
from support.windows.windows_minion import WindowsMinion
from support.windows.wine import Wine

HELPER = REPOSITORY / "plugins" / "module_utils" / "azure_scheduled_events"
VMS = {"groups": {"web": {"kind": "standalone", "vms": {"vm1": {}}}}, "knobs": {"rate_limit": 0}}
MINION: list[WindowsMinion] = []


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the minion's log with a failure."""
    report = yield
    if report.failed:
        report.sections += [("the minion's log", "\n".join(one.log_text().splitlines()[-60:])) for one in MINION]
    return report


@pytest.fixture(scope="session", autouse=True)
def loopback() -> None:
    start_loopback()


@pytest.fixture(scope="module")
def azure() -> Iterator[Azure]:
    manual = ["--clock", "manual"]
    with at_imds_address(), simulator_process.start(VMS, args=manual, listen=f"{IMDS}:80") as simulator:
        yield Azure(simulator)


@pytest.fixture(scope="session")
def wine() -> Iterator[Wine]:
    folder = os.environ.get("WINDOWS_DRIVE")
    if not folder:
        pytest.skip("WINDOWS_DRIVE names no folder with a Windows Python; `make windows` does")
    wine = Wine(Path(folder))
    wine.end()
    wine.boot()
    yield wine
    wine.end()


@pytest.fixture(scope="session")
def helper(wine: Wine) -> str:
    r"""The folder of C: for sys.path, with the helper as the checkout has it."""
    folder = wine.drive / "helper"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(HELPER, folder / HELPER.name, ignore=shutil.ignore_patterns("__pycache__"))
    return wine.outside(folder)


@pytest.fixture(scope="module")
def site(azure: Azure) -> Iterator[Cluster]:
    with cluster(SaltInstallation.at(Path(os.environ["SALT_HOME"]).absolute())) as here:
        yield here


@pytest.fixture(scope="module")
def minion(wine: Wine, site: Cluster) -> Iterator[WindowsMinion]:
    """The minion vm1 with the modules of this checkout, whose steps write lines into C:\\ran."""
    vm1 = WindowsMinion("vm1", wine, site.master)
    vm1.configure(beacons={"azure_events": [{"interval": 1}, {"repeat": 3600}]})
    site.master.set_pillar(
        vm1={
            "azure_events": {
                "prepare": [
                    {"name": "note", "command": r"echo prepare>>C:\ran"},
                    {"name": "mark", "function": "file.touch", "args": [r"C:\marked"], "timeout": 120},
                ],
                "recover": [{"name": "note", "command": r"echo recover>>C:\ran"}],
            }
        }
    )
    MINION.append(vm1)
    site.master.start()
    try:
        vm1.start()
        vm1.ask("saltutil.sync_all")
        yield vm1
    finally:
        vm1.kill()
