# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Texts of IMDS, hosts and users for terminals and logs."""

from __future__ import annotations


def escape_surrogates(text: str) -> str:
    """Return the text with lone surrogates escaped: JSON allows them, terminals and Ansible do not accept them."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def printable(text: str) -> str:
    """Return the text on one line, with "?" for each character that could control a terminal."""
    if text.isprintable():
        return text
    # lone surrogates are not printable either, but stay recognizable
    return "".join(character if character.isprintable() else "?" for character in escape_surrogates(text))
