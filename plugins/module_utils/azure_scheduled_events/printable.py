# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Texts of IMDS, hosts and users for terminals and logs."""

from __future__ import annotations


def printable(text: str) -> str:
    """Return the text on one line, with "?" for each character that could control a terminal."""
    if text.isprintable():
        return text
    # lone surrogates are not printable either, but stay recognizable
    escaped = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return "".join(character if character.isprintable() else "?" for character in escaped)
