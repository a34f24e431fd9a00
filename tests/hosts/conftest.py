# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Hosts for the tests of this folder. Without namespaces of their own they are skipped: see tests/README.md."""

from __future__ import annotations

from pathlib import Path
from typing import Iterator

import pytest

from hosts.host import Host
from hosts.lab import Lab, reason_against_this_process


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    if reason := reason_against_this_process():
        pytest.skip(reason)
    with Lab("azure-imds-lab", tmp_path_factory.mktemp("lab") / "hosts") as made:
        yield made


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where inventories and playbooks of the session go."""
    return tmp_path_factory.mktemp("ansible")


@pytest.fixture(scope="session")
def vm1(lab: Lab) -> Host:
    return lab.host("vm1")
