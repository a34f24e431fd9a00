# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Hosts for the tests of this folder; skipped outside of separate namespaces, see tests/README.md."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.hosts.host import Host
from support.hosts.lab import Lab, skip_reason_of_this_process
from support.hosts.role_host import Azure, RoleHost, azure_of, idle_host


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    if reason := skip_reason_of_this_process():
        pytest.skip(reason)
    with Lab("azure-imds-lab", tmp_path_factory.mktemp("lab") / "hosts") as made:
        yield made


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of inventories and playbooks of the session."""
    return tmp_path_factory.mktemp("ansible")


@pytest.fixture(scope="session")
def vm1(lab: Lab) -> Host:
    return lab.host("vm1")


@pytest.fixture(scope="module")
def installed(request: pytest.FixtureRequest, lab: Lab, folder: Path) -> RoleHost:
    """The role on a host of the test file, which names the host in VM."""
    site = RoleHost(lab.host(request.module.VM), folder)
    site.must_apply()
    return site


@pytest.fixture(scope="module")
def azure(installed: RoleHost, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Azure]:
    with azure_of({installed.host.name: installed.host}, tmp_path_factory.mktemp("azure")) as made:
        yield made


@pytest.fixture
def site(installed: RoleHost, azure: Azure) -> Iterator[RoleHost]:
    with idle_host(installed, azure) as ready:
        yield ready
