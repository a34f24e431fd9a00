# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The rulebook maintenance with the event source recovers hosts after an event, without an operator."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from support.eda.rulebook import Rulebook
from support.eda.three_hosts import EVENT, NAMES, ThreeHosts
from support.maintenance.fleet import LIFE
from support.repository import REPOSITORY
from support.simulator_process import Simulator
from support.wait import wait_until


def test_announced_event_ends_in_recovered_hosts(trio: Simulator, tmp_path: Path) -> None:
    hosts = ThreeHosts(trio, tmp_path)
    with Rulebook(tmp_path, hosts.inventory, variables=hosts.source_variables) as rulebook:
        trio.post("/events", {**EVENT, "type": "SpotRebalanceRecommendation", "notice": "2d"})
        trio.post("/events", EVENT)
        hosts.wait_for_approval(1, rulebook.log)
        assert set(hosts.course_of("prepare")) == set(NAMES)
        trio.advance(1)
        hosts.wait_for_polls()
        trio.advance(LIFE)
        hosts.wait_for_recovery(1, rulebook.log)
        wait_until(lambda: rulebook.runs() >= 1, "the end of the run", rulebook.log)
    # none for the advice
    assert rulebook.runs() == 1
    assert sorted(hosts.course_of("prepare")) == sorted(hosts.course_of("recover")) == list(NAMES)
    assert [line["why"] for line in trio.get("/log")["lines"] if line["what"] == "started"] == ["approved"]


@pytest.mark.all
def test_killed_rulebook_continues_after_its_restart(trio: Simulator, tmp_path: Path) -> None:
    """The next one continues from the notes on the hosts."""
    hosts = ThreeHosts(trio, tmp_path)
    with Rulebook(tmp_path, hosts.inventory, variables=hosts.source_variables) as rulebook:
        trio.post("/events", EVENT)
        hosts.wait_for_approval(1, rulebook.log)
        rulebook.stop()
        trio.advance(1)
        assert all(hosts.note(name) for name in NAMES)
        rulebook.start()
        hosts.wait_for_polls()
        trio.advance(LIFE)
        hosts.wait_for_recovery(1, rulebook.log)
    assert len(hosts.approvals()) == 1
    assert sorted(hosts.course_of("prepare")) == sorted(hosts.course_of("recover")) == list(NAMES)


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
    """The run that fails is repeated: no later report would start another one."""
    hosts = ThreeHosts(trio, tmp_path)
    trio.post("/faults", {"kind": "status", "status": 403, "route": "scheduledevents", "vm": "vm2"})
    with Rulebook(tmp_path, hosts.inventory, with_short_pauses(tmp_path), hosts.source_variables) as rulebook:
        trio.post("/events", {**EVENT, "resources": ["vm2"]})
        wait_until(lambda: rulebook.runs() >= 1, "the run that fails", rulebook.log)
        assert not hosts.approvals() and not hosts.note("vm2")
        trio.delete("/faults")
        hosts.wait_for_approval(1, rulebook.log)
    assert hosts.course_of("prepare") == ["vm2"]
