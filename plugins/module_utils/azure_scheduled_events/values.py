# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Values that people write: durations, keywords, and what a misspelt keyword is probably meant to be."""

from __future__ import annotations

import re
from typing import Any, Sequence

# a hundred years, which NaN and infinity are not below either
_LONGEST = 3.2e9
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)\s*([smhd]?)")


def parse_seconds(value: Any) -> float:
    """Seconds from a number or a text such as ``30s``, ``15m``, ``2h`` or ``5d``. Raises ValueError."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < _LONGEST:
        return float(value)
    match = _AMOUNT.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        raise ValueError(f"expected seconds as a number, or a text like 30s, 15m, 2h or 5d, not {value!r}")
    return float(match.group(1)) * _UNITS[match.group(2) or "s"]


def parse_choice(word: Any, known: Sequence[str], kind: str) -> str:
    """The known word in its own spelling. Raises ValueError that names the nearest one."""
    for candidate in known:
        if isinstance(word, str) and candidate.casefold() == word.casefold():
            return candidate
    raise ValueError(f"unknown {kind} {word!r}{did_you_mean(word, known)}")


def did_you_mean(word: Any, known: Sequence[str]) -> str:
    """A closing "; did you mean ...?" or the list of what there is."""
    found = suggestion(word, known)
    return f"; there are: {', '.join(known)}" if found is None else f"; did you mean {found}?"


def suggestion(word: Any, known: Sequence[str]) -> str | None:
    """The known word that this one is most probably meant to be, or None."""
    import difflib  # only needed to word an error

    close = difflib.get_close_matches(str(word).casefold(), [item.casefold() for item in known], 1)
    return next((item for item in known if close and item.casefold() == close[0]), None)
