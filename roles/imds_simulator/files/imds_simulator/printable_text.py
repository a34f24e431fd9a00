# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Text for a line of a terminal."""

from __future__ import annotations


def printable(text: str) -> str:
    """Return ``text`` with escapes for line breaks and control characters, which a name of a scenario may have."""
    return text if text.isprintable() else "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)
