# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Notes: steps of a VM that the simulator cannot observe."""

from __future__ import annotations

import pytest

from imds_simulator.__main__ import main
from support.simulator_process import ControlError

EVENT = {"name": "noted", "type": "Freeze", "resources": ["vm1"], "hold": True}


def notes(sim):
    return [(line["vm"], line["event"], line["note"]) for line in sim.get("/log?what=note")["lines"]]


def test_note_is_in_the_log_with_the_name_of_its_event(frozen_simulator, capsys):
    sim = frozen_simulator
    before = len(notes(sim))
    event_id = sim.post("/events", EVENT)["id"]
    assert sim.post("/notes", {"vm": "vm1", "what": "prepared"}) == {"vm": "vm1", "what": "prepared", "event": None}
    for event in ("noted", event_id.lower()):
        assert main(["note", "vm2", "is <empty>", "--event", event, "--control", sim.control]) == 0
    sim.post("/events/noted/complete")
    assert main(["note", "vm1", "recovered", "--event", event_id, "--control", sim.control]) == 0
    assert '"recovered"' in capsys.readouterr().out
    assert notes(sim)[before:] == [
        ("vm1", "", "prepared"),
        ("vm2", "noted", "is <empty>"),
        ("vm2", "noted", "is <empty>"),
        ("vm1", "noted", "recovered"),
    ]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"vm": "vm9", "what": "prepared"}, 400),
        ({"vm": ["vm1"], "what": "prepared"}, 400),
        ({"what": "prepared"}, 400),
        ({"vm": "vm1"}, 400),
        ({"vm": "vm1", "what": ""}, 400),
        ({"vm": "vm1", "what": 3}, 400),
        ({"vm": "vm1", "what": "x" * 201}, 400),
        ({"vm": "vm1", "what": "two\nlines"}, 400),
        ({"vm": "vm1", "what": "\x1b[2J"}, 400),
        ({"vm": "vm1", "what": "prepared", "evnt": "x"}, 400),
        ({"vm": "vm1", "what": "prepared", "event": "missing"}, 404),
    ],
)
def test_invalid_note_is_refused(frozen_simulator, body, status):
    before = notes(frozen_simulator)
    with pytest.raises(ControlError) as refused:
        frozen_simulator.post("/notes", body)
    assert refused.value.status == status
    assert notes(frozen_simulator) == before
