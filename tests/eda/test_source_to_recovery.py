# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The rulebook maintenance with the event source: an announced event ends in recovered hosts, without an operator."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.eda.rulebook import Rulebook
from support.eda.three_hosts import EVENT, NAMES, ThreeHosts
from support.simulator_process import Simulator


@pytest.mark.short
def test_announced_event_ends_in_recovered_hosts_twice(trio: Simulator, tmp_path: Path) -> None:
    hosts = ThreeHosts(trio, tmp_path)
    with Rulebook(tmp_path, hosts.inventory, variables=hosts.source_variables) as rulebook:
        for number in (1, 2):
            trio.post("/events", {**EVENT, "name": f"event{number}"})
            hosts.pass_through_event(number, rulebook.log)
    assert hosts.course_of("prepare").count("vm1") == 2
    assert set(hosts.course_of("prepare")) == set(hosts.course_of("recover")) == set(NAMES)
    assert [line["why"] for line in hosts.starts()] == ["approved", "approved"]
