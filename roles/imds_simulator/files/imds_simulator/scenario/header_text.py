# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The text that HTTP allows in names and values of headers."""

from __future__ import annotations

import re

# the characters that RFC 9110 allows in the name of a header, and those that end a value
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_BREAK = re.compile(r"[\r\n\0]")
# a tab is the only control character that a value may have
_CONTROL = re.compile(r"[\0-\x08\x0a-\x1f\x7f\ud800-\udfff]")


def is_header_name(text: str) -> bool:
    """Return True if ``text`` is allowed as the name of a header."""
    return _TOKEN.fullmatch(text) is not None


def has_line_break(text: str) -> bool:
    """Return True if ``text`` would end the header: the rest would be another header."""
    return _BREAK.search(text) is not None


def is_header_value(text: str) -> bool:
    """Return True if ``text`` can be sent as the value of a header."""
    return _CONTROL.search(text) is None
