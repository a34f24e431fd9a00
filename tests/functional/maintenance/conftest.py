# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A simulated Azure with a manual clock."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support import simulator_process
from support.maintenance.fleet import MANUAL, PAIR, TRIO, Fleet
from support.simulator_process import Simulator


@pytest.fixture
def azure() -> Iterator[Simulator]:
    """Azure with vm1 and vm2 of one availability set, without an event."""
    with simulator_process.start({"groups": PAIR, "knobs": {"rate_limit": 0}}, args=MANUAL) as running:
        yield running


@pytest.fixture
def fleet(azure: Simulator, tmp_path: Path) -> Fleet:
    """vm1 and vm2 as hosts of the play."""
    return Fleet(azure, tmp_path)


@pytest.fixture
def trio() -> Iterator[Simulator]:
    """Azure with vm1, vm2 and vm3 of one availability set, without an event."""
    with simulator_process.start({"groups": TRIO, "knobs": {"rate_limit": 0}}, args=MANUAL) as running:
        yield running


@pytest.fixture
def down(tmp_path: Path) -> Path:
    """The folder whose files make connections fail, see flaky_ssh.py."""
    folder = tmp_path / "down"
    folder.mkdir()
    return folder
