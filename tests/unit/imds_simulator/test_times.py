# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Durations."""

from __future__ import annotations

from typing import Any

import pytest

from imds_simulator.times import duration_text, parse_duration, parse_signed_duration

DURATIONS = [(5, 5), (0.5, 0.5), ("90", 90), ("30s", 30), ("15m", 900), ("2h", 7200), ("5d", 432000), ("1h30m", 5400)]


@pytest.mark.parametrize(("text", "seconds"), [*DURATIONS, ("250ms", 0.25), (" 3M ", 180)])
def test_parse_duration_returns_seconds(text: Any, seconds: float) -> None:
    assert parse_duration(text) == parse_signed_duration(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "m", "5 m", "-5", -5, "1e3", "5w", None, True, [], "9999999d", 10**400, float("nan")]
)
def test_parse_duration_of_other_text_is_an_error(text: Any) -> None:
    with pytest.raises(ValueError):
        parse_duration(text)


@pytest.mark.parametrize("text", ["--5", "-", "fast", None, True, [], float("nan"), "-9999999d", -(10**400)])
def test_parse_signed_duration_of_other_text_is_an_error(text: Any) -> None:
    assert (parse_signed_duration("-20m"), parse_signed_duration(-1.5)) == (-1200, -1.5)
    with pytest.raises(ValueError, match="may begin with a minus sign"):
        parse_signed_duration(text)


@pytest.mark.parametrize("text", ["0s", "30s", "4m59s", "1h", "5d", "1d2h3m4.5s"])
def test_duration_text_is_what_parse_duration_reads(text: str) -> None:
    assert duration_text(parse_duration(text)) == text
