# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A run that fails is repeated before the event: no later report would start another one."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from support.eda.rulebook import Rulebook
from support.eda.three_hosts import EVENT, ThreeHosts
from support.repository import REPOSITORY
from support.simulator_process import Simulator
from support.wait import wait_until


def with_short_pauses(folder: Path) -> Path:
    """Write the rulebook with a second in the place of the minute before a run is repeated."""
    (ruleset,) = yaml.safe_load((REPOSITORY / "extensions/eda/rulebooks/maintenance.yml").read_text())
    for rule in ruleset["rules"]:
        assert rule["action"]["run_playbook"]["delay"] == 60
        rule["action"]["run_playbook"]["delay"] = 1
    path = folder / "short-pauses.yml"
    path.write_text(yaml.safe_dump([ruleset]))
    return path


@pytest.mark.all
def test_host_that_fails_at_first_is_prepared_before_the_event(trio: Simulator, tmp_path: Path) -> None:
    hosts = ThreeHosts(trio, tmp_path)
    trio.post("/faults", {"kind": "status", "status": 403, "route": "scheduledevents", "vm": "vm2"})
    with Rulebook(tmp_path, hosts.inventory, with_short_pauses(tmp_path), hosts.source_variables) as rulebook:
        trio.post("/events", {**EVENT, "resources": ["vm2"]})
        wait_until(lambda: rulebook.runs() >= 1, "the run that fails", rulebook.log)
        assert not hosts.approvals() and not hosts.note("vm2")
        trio.delete("/faults")
        hosts.wait_for_approval(1, rulebook.log)
    assert hosts.course_of("prepare") == ["vm2"]
