# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""What the orchestration is going to do by what its look at the minions says. tests/salt/live runs it."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from conftest import ROOT
from jinja2 import Environment
from salt.utils.jinja import SerializerExtension

EVENT = {"event_id": "A1", "event_type": "Preempt", "status": "Scheduled"}
READY = {"listed": True, "event": EVENT, "minions": {"vm1": "m1", "vm2": "m2"}, "unknown_resources": [], "unready": [], "silent": []}
OVER = dict(READY, listed=False, event=None)


def plan(look: dict[str, Any], **settings: Any) -> dict[str, Any]:
    """The orchestration's states by name, each with its function and its words."""
    pillar = {"azure_events": {"event_id": "A1", "minion": "m1", "patience": 3600.0, **settings}}
    salt = {"pillar.get": lambda key, default=None: pillar.get(key, default), "saltutil.runner": lambda name, kwarg: look}
    template = Environment(extensions=[SerializerExtension, "jinja2.ext.do"]).from_string((ROOT / "orch" / "maintenance.sls").read_text())
    found = {}
    for name, state in yaml.safe_load(template.render(salt=salt)).items():
        ((function, words),) = state.items()
        found[name] = {"function": function, **{key: value for word in words for key, value in word.items()}}
    return found


def test_all_is_done_in_its_order() -> None:
    states = plan(READY)
    assert list(states) == ["drain", "drained indeed", "approve", "it is over", "undrain"]
    requires = [state.get("require") for state in states.values()]
    assert requires == [None, [{"salt": "drain"}], [{"salt": "drained indeed"}], [{"salt": "approve"}], [{"salt": "it is over"}]]


@pytest.mark.parametrize("look", [READY, OVER, dict(READY, event=dict(EVENT, status="Started"))])
def test_nothing_that_the_minions_are_told_to_do_is_a_dry_run_or_for_another_event(look: dict[str, Any]) -> None:
    for state in plan(look).values():
        if state["function"] == "salt.state":
            assert (state["test"], state["queue"], state["pillar"]) == (False, True, {"azure_events_event": "A1"})


@pytest.mark.parametrize("settings", [{}, {"unknown_resources": "approve"}])
def test_minion_that_is_not_ready_holds_the_approval_whatever_is_set(settings: dict[str, Any]) -> None:
    states = plan(dict(READY, unready=["m3"]), **settings)
    assert "drain" in states and not {"approve", "it is over", "undrain"} & set(states)


def test_strangers_hold_the_approval_unless_it_is_said_otherwise() -> None:
    look = dict(READY, unknown_resources=["vm3"])
    assert "approve" not in plan(look)
    assert plan(look, unknown_resources="approve")["approve"]["require"] == [{"salt": "drained indeed"}]


def test_what_one_look_does_not_list_is_looked_at_again_before_anybody_is_brought_back() -> None:
    states = plan(OVER)
    assert list(states) == ["it is over", "undrain"]
    assert (states["it is over"]["name"], states["it is over"]["patience"]) == ("azure_events.await_end", 60)
    assert states["undrain"]["require"] == [{"salt": "it is over"}]


def test_the_wait_knows_what_kind_of_event_it_is_and_how_long_to_be_patient() -> None:
    waiting = plan(READY)["it is over"]
    assert (waiting["event_type"], waiting["patience"]) == ("Preempt", 3600.0)
    assert plan(OVER)["it is over"]["event_type"] is None


def test_nothing_is_done_while_nobody_can_tell() -> None:
    assert [state["function"] for state in plan(dict(OVER, listed=None)).values()] == ["test.fail_without_changes"]
