# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""The environment variables about the event that a command gets, sanitised. Pure."""

from __future__ import annotations

import sys
import unicodedata
from typing import Any, Mapping

# the kernel allows 128 KiB for one variable
_MAX_VALUE_BYTES = 8 * 1024
# Windows allows 32767 characters for a variable with its name
_MAX_LIST_BYTES = (31 if sys.platform == "win32" else 32) * 1024
_CMD_SYNTAX = str.maketrans(dict.fromkeys('"%&()<>^|!', "?"))


def variables(stage: str, event_id: str, event: Mapping[str, Any], resource_name: str | None) -> dict[str, str]:
    """Return EVENT_ID and the other variables; an unknown value is empty.

    ``stage`` is "prepare" or "recover". ``event`` has the shape of ``azure_events.list``, or a part of
    it. For a preparation by hand ``event_id`` and ``event`` are empty. ``resource_name`` is this VM's.
    """
    seconds = event.get("duration_seconds")
    values = {
        "EVENT_ID": event_id,
        "EVENT_TYPE": event.get("event_type"),
        "EVENT_STATUS": event.get("status"),
        "EVENT_SOURCE": event.get("source"),
        "EVENT_DESCRIPTION": event.get("description"),
        "EVENT_NOT_BEFORE": event.get("not_before"),
        "EVENT_DURATION": None if seconds is None else f"{int(seconds)}",
        "EVENT_RESOURCE": resource_name,
        "EVENT_STAGE": stage,
    }
    cleaned = {name: _truncate(_printable(str(value or "")), _MAX_VALUE_BYTES) for name, value in values.items()}
    return {
        **cleaned,
        "EVENT_RESOURCES": _truncate(
            " ".join(_without_spaces(str(name)) for name in event.get("resources", ())), _MAX_LIST_BYTES
        ),
    }


def for_step(event: Mapping[str, str], timeout: float, seconds_left: float | None) -> dict[str, str]:
    """Return the variables of one step, which include those of `variables` in ``event``.

    ``timeout`` is in seconds. ``seconds_left`` is the time until the event may start, None if that is
    not known.
    """
    return {
        **event,
        "EVENT_SECONDS_LEFT": "" if seconds_left is None else f"{int(seconds_left)}",
        "HOOK_SECONDS": f"{int(timeout)}" if timeout >= 1 else f"{timeout:g}",
    }


def without_cmd_syntax(value: str) -> str:
    """Return the value with "?" for the characters that have a meaning for cmd.exe.

    Windows' shell replaces a variable by its value before it parses the command; a value with such
    characters could contain a command. Code pages replace other signs, such as a wide quotation mark, by
    these characters; therefore only letters and digits remain beyond ASCII.
    """
    return "".join(
        character if character.isascii() or _is_plain(character) else "?" for character in value.translate(_CMD_SYNTAX)
    )


def _is_plain(character: str) -> bool:
    # a letter of the category Lm may be a mark like a quotation mark
    return character.isalnum() and unicodedata.category(character) != "Lm"


def _printable(text: str) -> str:
    """Return the text with "?" for control characters and lone surrogates."""
    return "".join(character if character.isprintable() else "?" for character in text)


def _without_spaces(name: str) -> str:
    """Return a resource name without white space, which separates names; "?" for an empty one."""
    return "".join("?" if character.isspace() else character for character in _printable(name)) or "?"


def _truncate(text: str, most: int) -> str:
    data = text.encode("utf-8")
    return text if len(data) <= most else data[: most - 3].decode("utf-8", "ignore") + "..."
