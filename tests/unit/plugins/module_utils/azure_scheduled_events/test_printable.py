# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: GPL-3.0-or-later
"""Texts for terminals and logs."""

from __future__ import annotations

import pytest
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.printable import (
    printable,
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Vorgänge für vm-1", "Vorgänge für vm-1"),
        ("one\r\ntwo\x1b[2J", "one??two?[2J"),
        ("\x9b31m\u2028\u202e\x00\x7f", "?31m????"),
        ("half \ud800", "half \\ud800"),
        ("", ""),
    ],
)
def test_printable_replaces_what_controls_a_terminal(text: str, shown: str) -> None:
    assert printable(text) == shown
