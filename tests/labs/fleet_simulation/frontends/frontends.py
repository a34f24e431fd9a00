# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The frontends by name, and one run of a scenario with one of them."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Protocol

from fleet_simulation.frontends.coordinated import Coordinated
from fleet_simulation.frontends.daemons import CONFIGURATIONS, Daemons
from fleet_simulation.frontends.role import Role
from fleet_simulation.frontends.rulebook import Rulebook
from fleet_simulation.frontends.salt_minions import SaltMinions
from fleet_simulation.frontends.scenario import Scenario
from fleet_simulation.frontends.world import World
from fleet_simulation.profiles import make_profiles


class Frontend(Protocol):
    """One way to handle the events of a world."""

    def run(self) -> None:
        """Handle them until the end of the scenario."""


# takes a world and a folder
Make = Callable[[World, Path], Frontend]


def make_frontends(folder: Path) -> Mapping[str, Make]:
    """Return the frontends; ``folder`` gets the files of the hook runners' configurations."""
    profiles = make_profiles(folder, CONFIGURATIONS)
    return {
        "hook runner": partial(Daemons, profiles=profiles),
        "role": Role,
        "role that coordinates": partial(Coordinated, profiles=profiles),
        "Salt": SaltMinions,
        "rulebook": Rulebook,
    }


def run(make: Make, scenario: Scenario, disks: Path) -> World:
    """Return the world after a scenario."""
    # the pauses after errors
    random.seed(scenario.seed)
    world = World(scenario)
    with tempfile.TemporaryDirectory(dir=disks) as folder:
        make(world, Path(folder)).run()
    return world
