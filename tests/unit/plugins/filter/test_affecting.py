# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.azure_imds.scheduled_events.plugins.filter.affecting import affecting


def event(*resources, **more):
    return {
        "event_id": "A",
        "event_type": "Reboot",
        "status": "Scheduled",
        "resources": list(resources),
        "not_before": "2026-11-21T10:15:00Z",
        "duration_seconds": 9,
        **more,
    }


BOTH, FIRST, LONGER = event("vm1", "vm2"), event("VM1"), event("vm10", "xvm1")


@pytest.mark.parametrize(
    "names, expected", [("vm1", [BOTH, FIRST]), ("vm", []), (["vm2", "vm10"], [BOTH, LONGER]), ([], [])]
)
def test_affecting_compares_whole_names_in_any_letter_case(names, expected):
    assert affecting([BOTH, FIRST, LONGER], names) == expected


@pytest.mark.parametrize("names", [None, "", ["vm1", ""], 5, {"vm1": 1}])
def test_affecting_refuses_names_that_are_not_names(names):
    # an unknown name must not look like "no event affects this VM"
    with pytest.raises(AnsibleFilterError, match="affecting: names is not the name"):
        affecting([BOTH], names)


@pytest.mark.parametrize("events", [None, BOTH, "vm1", 3])
def test_affecting_refuses_a_value_that_is_not_a_list(events):
    with pytest.raises(AnsibleFilterError, match="not a list of events"):
        affecting(events, "vm1")


@pytest.mark.parametrize(
    "broken, named",
    [
        ("vm1", "not an object"),
        (None, "not an object"),
        ({"resources": ["vm1"]}, "event_id is missing"),
        (event("vm1", resources="vm1"), "resources is a single name, not a list"),
        (event("vm1", not_before="soon"), "not_before is not a time"),
    ],
)
def test_affecting_names_what_is_wrong_with_an_event(broken, named):
    with pytest.raises(AnsibleFilterError) as caught:
        affecting([BOTH, broken], "vm1")
    assert str(caught.value).startswith("affecting: ") and named in str(caught.value)
