# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: GPL-3.0-or-later
"""This VM's name, and the events that affect it."""

from __future__ import annotations

import pytest
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events import (
    OwnNameUnknown,
    ScheduledEvent,
)
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.identity import (
    affects,
    is_same_vm,
    resource_name_of,
)


def event(*resources):
    return ScheduledEvent("id", "Freeze", "Scheduled", resources, "VirtualMachine", None, "", "Platform", None)


def test_own_name_is_compute_name_and_not_the_computer_name():
    instance = {"compute": {"name": "web_13", "osProfile": {"computerName": "web00000d"}}}
    assert resource_name_of(instance) == "web_13"


@pytest.mark.parametrize(
    "instance",
    [{}, {"compute": None}, {"compute": {}}, {"compute": {"name": ""}}, {"compute": {"name": 3}}, {"compute": []}],
)
def test_a_missing_name_is_none(instance):
    assert resource_name_of(instance) is None


@pytest.mark.parametrize(
    "resource, name, same",
    [
        ("vm1", "vm1", True),
        ("VM1", "vm1", True),
        ("vm10", "vm1", False),
        ("vm1", "vm10", False),
        ("_myvm", "myvm", True),
        ("_MyVM", "myvm", True),
        ("__myvm", "myvm", False),
        ("web_13", "web00000d", False),
        ("STRASSE", "stra\u00dfe", True),
        ("", "", False),
        ("_", "", False),
    ],
)
def test_names_are_compared_whole_and_without_letter_case(resource, name, same):
    assert is_same_vm(resource, name) is same


def test_affects_is_true_for_a_named_vm():
    assert affects(event("vm1", "vm2"), "VM2")
    assert not affects(event("vm1", "vm22"), "vm2")
    assert not affects(event(), "vm2")


@pytest.mark.parametrize("name", [None, ""])
def test_an_unknown_own_name_is_an_error_and_never_a_guess(name):
    with pytest.raises(OwnNameUnknown, match="resource_name"):
        affects(event("vm1"), name)
