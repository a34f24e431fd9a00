# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Guessing what somebody meant to write."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def suggestion(word: str, known: Iterable[str]) -> str:
    """`` (did you mean X?)``, or nothing when no known word is close."""
    lowered = {each.lower(): each for each in known}
    close = difflib.get_close_matches(str(word).lower(), lowered, n=1, cutoff=0.5)
    return f" (did you mean {lowered[close[0]]}?)" if close else ""
