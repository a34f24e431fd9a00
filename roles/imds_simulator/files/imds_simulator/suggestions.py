# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Suggestions for misspelt names."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable

_MOST_SHOWN = 20


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return `` (did you mean X?)`` for a similar known name, else an empty text."""
    lowered = {each.lower(): each for each in known}
    close = difflib.get_close_matches(str(name).lower(), lowered, n=1, cutoff=0.5)
    return f" (did you mean {lowered[close[0]]}?)" if close else ""


def unknown(what: str, name: str, known: Collection[str]) -> str:
    """Return that there is no ``what`` of that name, with a similar known name, or all if they are few."""
    shown = sorted(known)
    hint = suggestion(name, shown) or (f"; there are {', '.join(shown)}" if len(shown) <= _MOST_SHOWN else "")
    return f"there is no {what} {name}{hint}"
