# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Suggestions for misspelt names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return `` (did you mean X?)`` for a similar known name, else an empty text."""
    lowered = {each.lower(): each for each in known}
    close = difflib.get_close_matches(str(name).lower(), lowered, n=1, cutoff=0.5)
    return f" (did you mean {lowered[close[0]]}?)" if close else ""
