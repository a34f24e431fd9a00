# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Hosts for the tests of this folder; skipped outside of separate namespaces, see tests/README.md."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.hosts.lab import Lab
from support.hosts.role_host import Azure, RoleHost, azure_of, idle_host


@pytest.fixture(scope="package")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with Lab(tmp_path_factory.mktemp("lab") / "hosts") as made:
        yield made


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of inventories and playbooks of the session."""
    return tmp_path_factory.mktemp("ansible")


@pytest.fixture(scope="package")
def role_host(lab: Lab, folder: Path) -> Callable[[str], RoleHost]:
    """A function that returns the host of a name, on which the role may have been applied."""

    @functools.cache
    def get(name: str) -> RoleHost:
        return RoleHost(lab.host(name), folder)

    return get


@pytest.fixture(scope="module")
def azure(
    request: pytest.FixtureRequest, role_host: Callable[[str], RoleHost], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Azure]:
    """The Azure of the host of the test file."""
    vm = request.module.VM
    with azure_of({vm: role_host(vm).host}, tmp_path_factory.mktemp("azure")) as made:
        yield made


@pytest.fixture(scope="module")
def installed(request: pytest.FixtureRequest, role_host: Callable[[str], RoleHost], azure: Azure) -> RoleHost:
    """The role on the host of the test file, which names the host in VM; test files of the same host share it."""
    site = role_host(request.module.VM)
    if site.first_run is None:
        site.first_run = site.must_apply(install_packages=True)
        assert site.watches()
    return site


@pytest.fixture
def site(installed: RoleHost, azure: Azure) -> Iterator[RoleHost]:
    with idle_host(installed, azure) as ready:
        yield ready
