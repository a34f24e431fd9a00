# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the table of types says about each type."""

from __future__ import annotations

import pytest
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.event_types import (
    EVENT_TYPES,
    advises,
    is_chosen,
    nature_of,
    removes_vm,
    severity,
)


def test_severity_grows_from_an_unknown_type_to_those_that_remove_the_vm():
    kinds = ["Hibernate", "Freeze", "reboot", "Redeploy", "TERMINATE"]
    assert sorted(kinds, key=severity) == kinds
    assert severity("Terminate") == severity("Preempt")
    assert len({severity(kind) for kind in kinds}) == len(kinds)
    assert min(map(severity, EVENT_TYPES)) > severity("Hibernate")


def test_nature_is_that_of_the_reference():
    assert [kind for kind in EVENT_TYPES if advises(kind)] == ["SpotRebalanceRecommendation"]
    assert [kind for kind in EVENT_TYPES if removes_vm(kind)] == ["Preempt", "Terminate"]
    assert nature_of("Hibernate") is nature_of("Freeze")


@pytest.mark.parametrize(
    "kind, types, chosen",
    [
        ("Freeze", None, True),
        ("Hibernate", None, True),
        ("SpotRebalanceRecommendation", None, False),
        ("SpotRebalanceRecommendation", ["spotrebalancerecommendation"], True),
        ("Freeze", ["Reboot"], False),
        ("Freeze", [], False),
    ],
)
def test_types_of_a_list_are_chosen_and_without_one_all_but_advice(kind, types, chosen):
    assert is_chosen(kind, types) is chosen
