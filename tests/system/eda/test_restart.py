# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A rulebook that is killed in the middle of an event: the next one continues from the notes on the hosts."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.eda.rulebook import Rulebook
from support.eda.three_hosts import EVENT, NAMES, ThreeHosts
from support.maintenance.fleet import LIFE
from support.simulator_process import Simulator


@pytest.mark.all
def test_killed_rulebook_continues_after_its_restart(trio: Simulator, tmp_path: Path) -> None:
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
