# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from maintenance_world.world import MEMORY


@pytest.fixture
def disks() -> Iterator[Path]:
    """The disks of simulated hosts."""
    with tempfile.TemporaryDirectory(prefix="fleet-", dir=MEMORY) as folder:
        yield Path(folder)
