# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The time of `pause --until`."""

from __future__ import annotations

from typing import Any

import pytest

from hook_runner.cli.verbs import moment


@pytest.mark.parametrize(
    "text, meant",
    [
        ("30m", {"seconds": 1800}),
        ("2h", {"seconds": 7200}),
        ("90", {"seconds": 90}),
        ("2026-11-21T18:00:00Z", {"until": "2026-11-21T18:00:00Z"}),
        ("2026-11-21 18:00", {"until": "2026-11-21T18:00:00Z"}),
        ("2026-11-21T18:00:00+02:00", {"until": "2026-11-21T16:00:00Z"}),
    ],
)
def test_moment_takes_a_duration_or_a_date(text: str, meant: dict[str, Any]) -> None:
    assert moment(text) == meant


@pytest.mark.parametrize("text", ["", "soon", "0", "-5m", "18:00", "2026-13-01T00:00:00Z", "2026-11-21"])
def test_moment_refuses_a_text_that_is_not_a_time(text: str) -> None:
    with pytest.raises(ValueError, match="expected a time such as 30m, 2h or 2026"):
        moment(text)
