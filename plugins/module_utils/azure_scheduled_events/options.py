# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Options as users write them: keys, choices, durations, whole numbers, true or false, lists, and event types.

Each parser returns the value or raises ValueError, with the same text in every frontend; a frontend adds the place.
It needs the standard library and event_types only: the ready hooks have links to both files.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Callable, TypeVar

from .event_types import EVENT_TYPES

Parser = Callable[[Any], Any]
T = TypeVar("T")

# a hundred years; the comparison also excludes NaN and infinity
_MAX_SECONDS = 3.2e9
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([smhd]?)")
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
_WHOLE_NUMBER = re.compile(r"-?[0-9]{1,18}")
# a type that Azure may introduce; a list in one text, or a pattern, is none
_TYPE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*")
# of such a type; "rebot" has 0.91 with Reboot, "Hibernate" 0.67 with Terminate
_SIMILAR_TYPE = 0.8
# a list of servers or hosts may have thousands
_MOST_SHOWN = 40


def parse_option(name: str, value: Any, parse: Callable[[Any], T]) -> T:
    """Return the parsed value; the ValueError for another one begins with the name of the option."""
    try:
        return parse(value)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def parse_options(given: Mapping[Any, Any], parsers: Mapping[str, Parser]) -> dict[str, Any]:
    """Return the parsed values by key; a key without a parser is an error."""
    for key in given:
        check_key(key, tuple(parsers))
    return {key: parse_option(key, value, parsers[key]) for key, value in given.items()}


def check_key(key: Any, known: Sequence[str], kind: str = "key") -> None:
    """Raise ValueError with the nearest known name unless the key, whose letter case counts, is known."""
    if key not in known:
        raise ValueError(f"unknown {kind} {key!r}{did_you_mean(key, known)}")


def parse_choice(value: Any, known: Sequence[str], kind: str = "value") -> str:
    """Return the known value that differs in letter case at most; ``kind`` is for the error."""
    found = usual_spelling(value, known) if isinstance(value, str) else None
    if found is None:
        raise ValueError(f"unknown {kind} {value!r}{did_you_mean(value, known)}")
    return found


def usual_spelling(value: str, known: Iterable[str]) -> str | None:
    """Return the known value that differs in letter case at most, or None."""
    folded = value.casefold()
    return next((candidate for candidate in known if candidate.casefold() == folded), None)


def parse_seconds(value: Any, least: float = 0, most: float | None = None) -> float:
    """Return the seconds of a number or of a text such as ``30s``, ``15m``, ``2h`` or ``5d``."""
    seconds = None
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        seconds = value
    elif isinstance(value, str):
        match = _DURATION.fullmatch(value.strip())
        seconds = float(match.group(1)) * _UNITS[match.group(2)] if match else None
    if seconds is None or not abs(seconds) < _MAX_SECONDS:
        raise ValueError(f"expected seconds as a number, or a text like 30s, 15m, 2h or 5d, not {value!r}")
    if not _is_within(seconds, least, most):
        raise ValueError(f"expected {_range(least, most)} seconds, not {value!r}")
    return float(seconds)


def parse_integer(value: Any, least: int = 0, most: int | None = None) -> int:
    """Return a whole number, also of a text with its digits."""
    is_number = isinstance(value, int) and not isinstance(value, bool)
    has_digits = isinstance(value, str) and _WHOLE_NUMBER.fullmatch(value)
    if not (is_number or has_digits) or not _is_within(int(value), least, most):
        raise ValueError(f"expected a whole number, {_range(least, most)}, not {value!r}")
    return int(value)


def parse_boolean(value: Any) -> bool:
    """Return true or false, as YAML and JSON have them."""
    if not isinstance(value, bool):
        raise ValueError(f"expected true or false, not {value!r}")
    return value


def as_list(value: Any) -> list[Any]:
    """Return the values of a list; any other value is a list of one."""
    return list(value) if isinstance(value, (list, tuple)) else [value]


def parse_text(value: Any) -> str:
    """Return the text."""
    if not isinstance(value, str):
        raise ValueError(f"expected a text, not {value!r}")
    return value


def parse_texts(value: Any) -> list[str]:
    """Return the texts of a list, or of one text; a blank one would match nothing."""
    texts = [parse_text(each) for each in as_list(value)]
    if not all(map(str.strip, texts)):
        raise ValueError(f"expected a text that is not blank, not {value!r}")
    return texts


def parse_event_types(value: Any) -> tuple[str, ...]:
    """Return the event types of a list, or of one text, each once."""
    return tuple(dict.fromkeys(map(parse_event_type, as_list(value))))


def parse_event_type(value: Any) -> str:
    """Return a type in Azure's spelling; letter case does not count.

    A name that is not in EVENT_TYPES is returned as it is: Azure may have introduced the type.

    Raises:
        ValueError: the value is not a name of letters and digits, or is similar to a known type, which the text names.
    """
    if not isinstance(value, str) or not _TYPE_NAME.fullmatch(value):
        raise ValueError(f"expected an event type such as Reboot, not {value!r}")
    try:
        return parse_choice(value, EVENT_TYPES, "event type")
    except ValueError:
        if suggestion(value, EVENT_TYPES, _SIMILAR_TYPE) is not None:
            raise
        return value


def type_warnings(place: str, names: Iterable[str]) -> list[str]:
    """Return a sentence, which begins with the place, for each name of an unknown type, in any letter case."""
    known = ", ".join(EVENT_TYPES)
    return [
        f"{place}: event type {event_type!r} is unknown; no rule approves it. There are: {known}"
        for event_type in map(parse_event_type, names)
        if event_type not in EVENT_TYPES
    ]


def did_you_mean(value: Any, known: Sequence[str]) -> str:
    """Return the end of an error text: "; did you mean ...?" or the list of valid values."""
    found = suggestion(value, known)
    return f"; there are: {', '.join(known[:_MOST_SHOWN])}" if found is None else f"; did you mean {found}?"


def suggestion(value: Any, known: Sequence[str], similar: float = 0.6) -> str | None:
    """Return the known value that is most similar, or None if the similarity of each is below ``similar`` of 1."""
    import difflib  # only needed for an error

    close = difflib.get_close_matches(str(value).casefold(), [item.casefold() for item in known], 1, similar)
    return next((item for item in known if close and item.casefold() == close[0]), None)


def _is_within(number: float, least: float, most: float | None) -> bool:
    return least <= number and (most is None or number <= most)


def _range(least: float, most: float | None) -> str:
    # not %g, which writes a million as 1e+06
    shown = [f"{end:.3f}".rstrip("0").rstrip(".") for end in (least, most) if end is not None]
    return " to ".join(shown) if most is not None else f"at least {shown[0]}"
