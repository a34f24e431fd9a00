# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The recorder of Salt's time line, which docs/time-lines.md shows."""

from __future__ import annotations

import pytest

from support.salt.salt_installation import SaltInstallation
from tools.pictures.time_lines.recording import ANNOUNCED, OVER, STARTED
from tools.pictures.time_lines.runs import salt

pytestmark = [pytest.mark.all, pytest.mark.xdist_group("time_line")]


def test_recording_has_the_steps_of_the_master_and_of_both_minions(installation: SaltInstallation) -> None:
    azure, master, *minions = salt.record(installation).lanes
    assert [step.step for step in azure.steps] == [ANNOUNCED, STARTED, OVER]
    assert {"draining", "prepared", "approved", "over", "recovered"} <= {step.step for step in master.steps}
    approved = []
    for minion in minions:
        steps = {step.step for step in minion.steps}
        assert {"seen", "prepared", "started", "over", "recovered"} <= steps
        assert {"azure_events.prepare", "azure_events.recover"} <= {work.name for work in minion.work}
        approved += [minion.name] * ("approved" in steps)
    # the engine has one of them approve
    assert len(approved) == 1
