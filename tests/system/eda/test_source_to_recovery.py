# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The rulebook maintenance with the event source recovers hosts after an event, without an operator."""

from __future__ import annotations

from pathlib import Path

from support.eda.rulebook import Rulebook
from support.eda.three_hosts import EVENT, NAMES, ThreeHosts
from support.maintenance.fleet import LIFE
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
    assert [line["why"] for line in hosts.starts()] == ["approved"]
