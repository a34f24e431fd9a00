# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The hosts and what is installed on them; see README.md."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from promises.coordinators import install_hook_runners
from promises.salt_site import salt_site
from promises.world import Hosts
from support.hosts.lab import Lab
from support.repository import REPOSITORY
from support.salt.master import Master
from tools.repository.collection_tree import copy_tree


@pytest.fixture(scope="package")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    folder = tmp_path_factory.mktemp("promises")
    with Lab(folder) as lab:
        yield Hosts(lab, folder)


@pytest.fixture(scope="session")
def collections(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("collections")
    copy_tree(REPOSITORY, folder)
    return folder


@pytest.fixture(scope="module")
def hook_runners(hosts: Hosts, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The role hook_runner on all hosts, whose service is stopped."""
    install_hook_runners(hosts, tmp_path_factory.mktemp("role") / "ansible")


@pytest.fixture(scope="module")
def salt_master(hosts: Hosts) -> Iterator[Master]:
    """A Salt master, of which the hosts are minions."""
    if "SALT_HOME" not in os.environ:
        pytest.skip("SALT_HOME names no environment with Salt; `make labs` does")
    home = Path(os.environ["SALT_HOME"])
    # sockets need a short path
    with tempfile.TemporaryDirectory(prefix="salt-") as folder, salt_site(hosts, home, Path(folder)) as master:
        yield master
