# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.azure_imds.scheduled_events.plugins.filter.time_left import time_left

EVENT = {
    "event_id": "A",
    "event_type": "Reboot",
    "status": "Scheduled",
    "resources": ["vm1"],
    "not_before": "2026-11-21T10:15:00Z",
    "duration_seconds": None,
}


@pytest.mark.parametrize(
    "now, seconds",
    [
        ("2026-11-21T10:00:00Z", 900),
        ("2026-11-21 10:14:59", 1),
        ("2026-11-21T10:15:00Z", 0),
        ("2026-11-21T12:00:00Z", 0),
    ],
)
def test_time_left_counts_to_not_before_and_is_never_negative(now, seconds):
    assert time_left(EVENT, now) == seconds


@pytest.mark.parametrize("more", [{"status": "Started"}, {"not_before": None}, {"status": "Started", "not_before": ""}])
def test_time_left_of_an_event_that_may_start_now_is_zero(more):
    assert time_left({**EVENT, **more}, "2026-11-21T10:00:00Z") == 0


def test_time_left_uses_the_present_time():
    # the test may take longer than usual, therefore an hour
    future = datetime.now(timezone.utc) + timedelta(hours=2)
    left = time_left({**EVENT, "not_before": future.strftime("%Y-%m-%dT%H:%M:%SZ")})
    assert isinstance(left, int) and 3600 < left <= 7200


@pytest.mark.parametrize("now", ["soon", 5, ""])
def test_time_left_refuses_a_time_that_cannot_be_read(now):
    with pytest.raises(AnsibleFilterError, match="time_left: now is not a time"):
        time_left(EVENT, now)


def test_time_left_refuses_a_list_of_events():
    with pytest.raises(AnsibleFilterError, match="time_left: not an object; give an event"):
        time_left([EVENT])
