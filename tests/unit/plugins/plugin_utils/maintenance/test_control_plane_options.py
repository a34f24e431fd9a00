# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options about Azure's control plane are refused before the first task of the role."""

from __future__ import annotations

import pytest
from ansible_collections.azure_imds.scheduled_events.plugins.plugin_utils._maintenance.control_plane_options import (
    problems_of_control_plane,
)

VM = "/subscriptions/8d5b8fe2/resourceGroups/rg/providers/Microsoft.Compute/virtualMachines/vm-1"
ARM = {
    "approve_by": "arm",
    "arm_endpoint": "https://management.azure.com",
    "arm_has_token": True,
    "arm_resource_id": VM,
}


@pytest.mark.parametrize(
    "options", [{}, {"approve_by": "module"}, ARM, {"down": True, "events_from": "caller", "ended": ["x"]}]
)
def test_usable_options_have_no_problem(options):
    assert problems_of_control_plane(options) == []


@pytest.mark.parametrize(
    ("options", "subject"),
    [
        ({"approve_by": "azure"}, "maintenance_approve_by"),
        ({**ARM, "arm_has_token": "False"}, "maintenance_arm_token"),
        ({**ARM, "arm_endpoint": "http://example.com"}, "maintenance_arm_endpoint"),
        ({**ARM, "arm_resource_id": "vm1"}, "maintenance_arm_resource_id"),
        ({**ARM, "arm_resource_id": ""}, "maintenance_arm_resource_id"),
        (
            {**ARM, "arm_resource_id": VM.replace("virtualMachines", "virtualMachineScaleSets")},
            "maintenance_arm_resource_id",
        ),
        ({"events_from": "imds"}, "maintenance_events_from"),
        ({"announced": [{}]}, "maintenance_announced[0]"),
        ({"ended": [{}]}, "maintenance_ended"),
        ({"down": True}, "maintenance_down"),
    ],
)
def test_problem_names_the_option_and_a_remedy(options, subject):
    (problem,) = problems_of_control_plane(options)
    assert problem.startswith(subject + ": ") and "; " in problem
