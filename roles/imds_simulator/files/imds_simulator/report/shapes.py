# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The shapes of marks: each kind has its own shape, and does not differ by colour alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from .facts import APPROVED, CHANGED, ERRORS, NOTE, PREPARED, RECOVERED, REFUSED, SEEN


class Shape(NamedTuple):
    """An SVG path around (0, 0) and its line in the legend."""

    path: str
    legend: str


SHAPES: Mapping[str, Shape] = {
    SEEN: Shape("M-5 0a5 5 0 1 0 10 0a5 5 0 1 0 -10 0z", "a VM first received the event"),
    PREPARED: Shape("M-5.5 -4.5h11l-5.5 10z", "prepared"),
    APPROVED: Shape("M-6 0l2 -2l2.5 2.5l5 -5.5l2 2l-7 7.5z", "approved"),
    RECOVERED: Shape("M-5.5 4.5h11l-5.5 -10z", "recovered"),
    NOTE: Shape("M-4.5 -5.5h9v8h-4l-2.5 3v-3h-2.5z", "another note"),
    CHANGED: Shape("M0 -6l5.5 6l-5.5 6l-5.5 -6z", "the event changed"),
    REFUSED: Shape(
        "M-6 -3.5l2.5 -2.5l3.5 3.5l3.5 -3.5l2.5 2.5l-3.5 3.5l3.5 3.5l-2.5 2.5l-3.5 -3.5l-3.5 3.5l-2.5 -2.5l3.5 -3.5z",
        "approval refused",
    ),
    ERRORS: Shape("M-2 -6.5h4l-.7 8h-2.6zM-1.8 3h3.6v3.5h-3.6z", "an answer was an error, or lost"),
}


def mark(kind: str, x: float, y: float, content: str = "") -> str:
    """Return the mark of ``kind`` at (``x``, ``y``); ``content`` are its child elements."""
    return f'<path class="mark {kind}" transform="translate({x:g} {y:g})" d="{SHAPES[kind].path}">{content}</path>'
