# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

from __future__ import annotations

from typing import Any

import pytest

from hook_runner.records import CLOSED, EMERGENCY, PHASES, PREPARE, RECOVER, STARTED, WATCHED
from support.daemon.record_factory import after, make_record

MINE = {"affects_this_vm": True}
IN_PHASES: list[tuple[dict[str, Any], str]] = [
    ({}, WATCHED),
    ({"seen_started": True}, WATCHED),
    (MINE, PREPARE),
    ({**MINE, "seen_started": True}, STARTED),
    ({**MINE, "seen_started": True, "first_status": "Started"}, EMERGENCY),
    ({"gone_at": after(1)}, RECOVER),
    ({**MINE, "gone_at": after(1)}, RECOVER),
    ({**MINE, "seen_started": True, "gone_at": after(1)}, RECOVER),
    ({**MINE, "seen_started": True, "gone_at": after(1), "closed_at": after(2)}, CLOSED),
    ({**MINE, "closed_at": after(2)}, CLOSED),
]


@pytest.mark.parametrize("values, phase", IN_PHASES)
def test_phase_follows_from_the_values_of_the_record(values: dict[str, Any], phase: str) -> None:
    record = make_record(1, "e-1")
    record.affects_this_vm = False
    for name, value in values.items():
        setattr(record, name, value)
    assert record.phase == phase


def test_table_of_phases_has_each_phase() -> None:
    assert {phase for _values, phase in IN_PHASES} == set(PHASES)
