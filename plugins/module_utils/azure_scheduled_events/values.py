# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Values in options and files: durations, api-versions, event types, keywords, and suggestions for misspelt ones."""

from __future__ import annotations

import re
from datetime import date, datetime
from typing import Any, Sequence

from .event_types import EVENT_TYPES

# a hundred years; the comparison also excludes NaN and infinity
_MAX_SECONDS = 3.2e9
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_API_VERSION = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:-[a-z]+)?")
_MOST_API_VERSIONS = 4
# a type that Azure may introduce; a list in one text, or a pattern, is none
_TYPE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*")
# of such a type; "rebot" has 0.91 with Reboot, "Hibernate" 0.67 with Terminate
_SIMILAR_TYPE = 0.8
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)\s*([smhd]?)")


def parse_seconds(value: Any) -> float:
    """Return the seconds of a number or a text such as ``30s``, ``15m``, ``2h`` or ``5d``, else raise ValueError."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < _MAX_SECONDS:
        return float(value)
    match = _AMOUNT.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        raise ValueError(f"expected seconds as a number, or a text like 30s, 15m, 2h or 5d, not {value!r}")
    return float(match.group(1)) * _UNITS[match.group(2) or "s"]


def parse_boolean(value: Any) -> bool:
    """Return the value if it is true or false, else raise ValueError."""
    if not isinstance(value, bool):
        raise ValueError(f"expected true or false, not {value!r}")
    return value


def parse_api_versions(value: Any) -> tuple[str, ...]:
    """Return api-versions of Scheduled Events in the order of fall-back, each once.

    Args:
        value: one, or a list of at most four: a poll may try them all, and IMDS takes five requests in a second.

    Raises:
        ValueError: the value is none of these.
    """
    listed = list(value) if isinstance(value, (list, tuple)) else [value]
    # YAML reads a version without quotes as a date
    texts = [str(each) if isinstance(each, date) and not isinstance(each, datetime) else each for each in listed]
    if not texts or not all(isinstance(each, str) and _API_VERSION.fullmatch(each) for each in texts):
        raise ValueError(f"expected an api-version such as 2020-07-01, or a list of some, not {value!r}")
    versions = tuple(dict.fromkeys(texts))
    if len(versions) > _MOST_API_VERSIONS:
        raise ValueError(f"expected at most {_MOST_API_VERSIONS} api-versions, not {len(versions)}")
    return versions


def parse_choice(value: Any, known: Sequence[str], kind: str) -> str:
    """Return the one of the known values that differs in letter case at most.

    ``kind`` is that of the value, for the error text.

    Raises:
        ValueError: the value is unknown; the text names the nearest valid one.
    """
    for candidate in known:
        if isinstance(value, str) and candidate.casefold() == value.casefold():
            return candidate
    raise ValueError(f"unknown {kind} {value!r}{did_you_mean(value, known)}")


def did_you_mean(value: Any, known: Sequence[str]) -> str:
    """Return the end of an error text: "; did you mean ...?" or the list of valid values."""
    found = suggestion(value, known)
    return f"; there are: {', '.join(known)}" if found is None else f"; did you mean {found}?"


def suggestion(value: Any, known: Sequence[str], similar: float = 0.6) -> str | None:
    """Return the known value that is most similar, or None if the similarity of each is below ``similar`` of 1."""
    import difflib  # only needed for an error

    close = difflib.get_close_matches(str(value).casefold(), [item.casefold() for item in known], 1, similar)
    return next((item for item in known if close and item.casefold() == close[0]), None)


def parse_event_type(value: Any) -> str:
    """Return a type in Azure's spelling.

    The letter case of the name does not count. A name that is not in EVENT_TYPES is returned as it is: Azure may have
    introduced the type.

    Raises:
        ValueError: the value is not a name of letters and digits, or is similar to a known type, which the text names.
    """
    if not isinstance(value, str) or not _TYPE_NAME.fullmatch(value):
        raise ValueError(f"expected an event type such as Reboot, not {value!r}")
    for known in EVENT_TYPES:
        if known.casefold() == value.casefold():
            return known
    similar = suggestion(value, EVENT_TYPES, _SIMILAR_TYPE)
    if similar is not None:
        raise ValueError(f"unknown event type {value!r}; did you mean {similar}?")
    return value


def warning_about(name: str) -> str | None:
    """Return a sentence for the user who named a type that is unknown, in any letter case, or None."""
    event_type = parse_event_type(name)
    if event_type in EVENT_TYPES:
        return None
    return f"event type {event_type!r} is unknown; no rule approves it. There are: {', '.join(EVENT_TYPES)}"
