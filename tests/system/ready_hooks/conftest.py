# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Hosts with workloads; skipped outside of separate namespaces, see tests/system/hosts/README.md."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from support.hosts import rootfs
from support.hosts.bridge import GATEWAY
from support.hosts.lab import Lab
from support.ready_hooks.certificates import Certificates
from support.ready_hooks.workload_host import WorkloadHost


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with Lab(tmp_path_factory.mktemp("lab") / "hosts") as made:
        yield made


@pytest.fixture(scope="module")
def workload_host(lab: Lab) -> Callable[..., WorkloadHost]:
    """A function that returns the host of a name, with the ready hooks and the packages of the suite."""
    made: dict[str, WorkloadHost] = {}

    def get(name: str, suite: str = rootfs.WORKLOADS) -> WorkloadHost:
        if name not in made:
            made[name] = WorkloadHost(lab.host(name, suite))
        return made[name]

    return get


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """An authority, and the certificate of a server on the bridge of the hosts."""
    return Certificates(tmp_path_factory.mktemp("certificates"), GATEWAY)
