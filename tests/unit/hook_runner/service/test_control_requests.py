# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The time of `pause --until`."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from hook_runner.service.control_requests import moment

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    "text, meant",
    [
        ("30m", datetime(2026, 11, 21, 12, 30, tzinfo=UTC)),
        ("2h", datetime(2026, 11, 21, 14, 0, tzinfo=UTC)),
        ("90", datetime(2026, 11, 21, 12, 1, 30, tzinfo=UTC)),
        ("2026-11-21T18:00:00Z", datetime(2026, 11, 21, 18, 0, tzinfo=UTC)),
        ("2026-11-21 18:00", datetime(2026, 11, 21, 18, 0, tzinfo=UTC)),
        ("2026-11-21T18:00:00+02:00", datetime(2026, 11, 21, 16, 0, tzinfo=UTC)),
    ],
)
def test_moment_takes_a_duration_or_a_date(text: str, meant: datetime) -> None:
    assert moment(text, NOW) == meant


@pytest.mark.parametrize("text", ["", "soon", "0", "-5m", "18:00", "2026-13-01T00:00:00Z", "2026-11-21"])
def test_moment_refuses_a_text_that_is_not_a_time(text: str) -> None:
    with pytest.raises(ValueError, match="expected a time such as 30m, 2h or 2026"):
        moment(text, NOW)
