# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The time that ready hooks get from the role maintenance."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.maintenance.fleet import LATE, Fleet
from support.simulator_process import Simulator

pytestmark = pytest.mark.all


def test_hook_seconds_are_at_most_the_time_that_is_left_less_five(azure: Simulator, tmp_path: Path) -> None:
    azure.post("/events", {**LATE, "type": "Preempt", "resources": ["vm1"], "notice": "25s"})
    seconds = tmp_path / "seconds"
    hook = {
        "use": "command",
        "prepare": ["sh", "-c", f"echo $HOOK_SECONDS >{seconds}"],
        "recover": ["true"],
        "state_directory": str(tmp_path / "records"),
    }
    given = {"maintenance_ready_hooks": [hook], "ready_hooks_directory": str(tmp_path / "library")}
    # the hook is the whole preparation
    ran = Fleet(azure, tmp_path).maintain("true", given={**given, "maintenance_prepare": ""})
    assert ran.returncode == 0, ran.stdout
    assert 0 < float(seconds.read_text()) <= 20
