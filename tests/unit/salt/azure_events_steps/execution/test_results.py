# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The output of a command on Windows as text."""

from __future__ import annotations

import pytest

from azure_events_steps.execution.results import TAIL, decode_windows_output


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", ""),
        (b"one\r\ntwo\r\n", "one\ntwo\n"),
        ("\u00fc\u20ac\u6f22".encode(), "\u00fc\u20ac\u6f22"),
        ("Gr\u00fc\u00dfe".encode("cp850"), "Gr\u00fc\u00dfe"),
        ("cut \u20ac".encode()[:-1], "cut "),
        (b"\x80 is not cut", "\u00c7 is not cut"),
    ],
    ids=["empty", "lines", "utf-8", "code-page", "ended-within-a-character", "short"],
)
def test_output_is_utf_8_or_else_in_the_code_page(data: bytes, text: str) -> None:
    assert decode_windows_output(data, "cp850") == text


@pytest.mark.parametrize("cut", [1, 2])
def test_end_of_a_long_output_that_begins_within_a_character_is_utf_8(cut: int) -> None:
    data = ("\u20ac" * TAIL).encode()[cut : cut + TAIL]
    assert set(decode_windows_output(data, "cp850")) == {"\u20ac"}
