# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The rulebook `maintenance`: its real event source and event filter, and a run of the role for each report."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.imds import Imds
from ansible_collections.azure_imds.scheduled_events.plugins.plugin_utils._event_driven import imds_watch
from ansible_collections.azure_imds.scheduled_events.plugins.plugin_utils._event_driven.event_filter import (
    NO_HOST,
    EventFilter,
)
from ansible_collections.azure_imds.scheduled_events.plugins.plugin_utils._event_driven.source_options import (
    parse_arguments,
)

from fleet_simulation.azure_model import date_at
from fleet_simulation.frontends.role import Role
from fleet_simulation.frontends.scenario import HORIZON
from fleet_simulation.frontends.world import World

SOURCE = "the event source"


class Rulebook:
    """The event source runs on the first VM."""

    def __init__(self, world: World, folder: Path) -> None:
        self._world = world
        self._role = Role(world, folder)
        self._filter = EventFilter()
        client = partial(Imds, transport=world.transport(world.vms[0], SOURCE))
        with mock.patch.object(imds_watch, "Imds", client):
            self._watch = imds_watch.ImdsWatch(
                parse_arguments({}), lambda: world.now, lambda: date_at(world.now), world.pass_time
            )

    def run(self) -> None:
        """Poll, and run the role for each report that is news."""
        while self._world.now < HORIZON:
            changes, pause = self._watch.poll()
            for change in changes:
                # names in Resources may be in other letter cases than those of hosts
                options = {"host_table": {vm: vm for vm in self._world.vms}}
                event = self._filter.apply({"scheduled_event": change}, options)
                assert isinstance(event, dict)
                if _starts_a_run(event["scheduled_event"]):
                    self._role.maintain(event["scheduled_event"]["hosts"], [event["scheduled_event"]], SOURCE)
            self._world.pass_time(pause)


def _starts_a_run(report: Mapping[str, Any]) -> bool:
    """Return True if the condition of the rule that maintains hosts holds."""
    is_about_hosts = report["limit"] != NO_HOST and report["nature"] != "advises"
    return report["is_news"] is True and report["change"] != "gone" and is_about_hosts
