# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Citations of docs/reference/scheduled-events.md in other files."""

from __future__ import annotations

import re

# a statement (1.8.5), a section (1.8) or a transition (2.1 (4a)) as a citation has it
_NUMBER = r"\d+(?:\.\d+)*(?: \(\d[a-z]?\))?"
_CITED = re.compile(rf"\breference(?:/scheduled-events\.md)?[\s#]+({_NUMBER}(?:(?:, | and | to ){_NUMBER})*)")


def cited_in(text: str) -> set[str]:
    """Return the sections and statements that a text cites."""
    return {number for found in _CITED.findall(text) for number in re.findall(_NUMBER, found)}
