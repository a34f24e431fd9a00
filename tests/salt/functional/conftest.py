# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Salt's own loader with the modules of this checkout, against a simulated Azure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.salt.azure import Azure
from support.salt.loaded import Beacons, CountingMinion, Minion
from support.salt.scripted import ScriptedImds
from support.salt.ticks import join_threads


@pytest.fixture
def scripted() -> Iterator[ScriptedImds]:
    with ScriptedImds() as imds:
        yield imds


@pytest.fixture
def minion(tmp_path: Path, azure: Azure) -> Minion:
    return Minion(tmp_path, azure.endpoints["vm1"])


@pytest.fixture
def watch(minion: Minion) -> Iterator[Callable[..., Beacons]]:
    """Start to watch with such options: watch(repeat=3)."""
    made: list[Beacons] = []

    def start(on: Minion = minion, **options: Any) -> Beacons:
        made.append(Beacons(on, [{key: value} for key, value in {"poll_interval": 0.25, **options}.items()]))
        return made[-1]

    yield start
    for beacons in made:
        beacons.close()
    join_threads()


@pytest.fixture
def counting(tmp_path: Path, azure: Azure) -> CountingMinion:
    return CountingMinion(tmp_path, azure.endpoints["vm1"])
