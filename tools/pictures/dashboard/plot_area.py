# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The area of a plot of values over time: its axes, lines that keep a value until the next one, and bars."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from tools.pictures.svg import text

# a value for each step of time; None where there is none
Values = Sequence[float | None]
# about so many marks on the axis of values, and seconds between two marks of time
MARKS, MINUTE = 4, 60


class Area:
    """A rectangle with a scale.

    Args:
        left, top, right, bottom: its edges in pixels.
        steps: number of values.
        all_values: what has to fit.

    Attributes:
        mark: the distance between two marks of the axis of values.
        highest: the value at the top.
    """

    def __init__(
        self, left: float, top: float, right: float, bottom: float, steps: int, all_values: Sequence[Values]
    ) -> None:
        self.left, self.top, self.right, self.bottom, self.steps = left, top, right, bottom, steps
        most = max((value for values in all_values for value in values if value is not None), default=1.0)
        self.mark = _round_number((most or 1.0) / MARKS)
        self.highest = math.ceil((most or 1.0) / self.mark) * self.mark

    def x(self, step: float) -> float:
        """Return the place of a step of time."""
        return self.left + (self.right - self.left) * step / (self.steps - 1)

    def y(self, value: float) -> float:
        """Return the place of a value."""
        return self.bottom - (self.bottom - self.top) * value / self.highest


def frame(area: Area, unit: str, seconds: float) -> list[str]:
    """Return the marks of both axes: values with their unit, and minutes of the recorded seconds."""
    lines = []
    digits = 0 if area.mark >= 1 else 1 if area.mark >= 0.1 else 2
    for number in range(round(area.highest / area.mark) + 1):
        y = area.y(number * area.mark)
        lines.append(f'<path class="grid" d="M{area.left:.1f} {y:.1f}H{area.right:.1f}"/>')
        # the unit is in the uppermost mark
        words = f"{number * area.mark:.{digits}f}"
        is_highest = number == round(area.highest / area.mark)
        lines.append(text(area.left - 5, y + 4, words + (unit if is_highest and len(unit) < 3 else ""), "small", "end"))
    for minute in range(int(seconds // MINUTE) + 1):
        x = area.x((area.steps - 1) * minute * MINUTE / seconds)
        lines.append(text(x, area.bottom + 14, f"{minute} min" if minute == 0 else str(minute), "small", "middle"))
    return lines


def line(area: Area, values: Values, lowest: Values, kind: str) -> list[str]:
    """Return a line that keeps each value until the next step, and the filled area below it."""
    lines = []
    for begin, end in _runs(values):
        upper, lower = _steps(area, values, begin, end), _steps(area, lowest, begin, end)
        lines.append(f'<path class="fill {kind}" d="M{"L".join(upper + lower[::-1])}z"/>')
        lines.append(f'<path class="line {kind}" d="M{"L".join(upper)}"/>')
    return lines


def _steps(area: Area, values: Values, begin: int, end: int) -> list[str]:
    """Return the points at which a line turns."""
    points = []
    for value, run in itertools.groupby(range(begin, end), lambda step: values[step] or 0.0):
        steps = [*run]
        right = area.x(min(steps[-1] + 1, area.steps - 1))
        points += [f"{area.x(steps[0]):.1f} {area.y(value):.1f}", f"{right:.1f} {area.y(value):.1f}"]
    return points


def bars(area: Area, values: Values, lowest: Values, kind: str) -> list[str]:
    """Return a bar for each value above the lowest."""
    wide = (area.right - area.left) / (area.steps - 1)
    return [
        f'<rect class="bar {kind}" x="{area.x(step) - wide / 2:.1f}" y="{area.y(value):.1f}" '
        f'width="{wide:.1f}" height="{area.y(lowest[step] or 0.0) - area.y(value):.1f}"/>'
        for step, value in enumerate(values)
        if value
    ]


def _runs(values: Values) -> list[tuple[int, int]]:
    """Return (first step, step after the last) of each sequence of steps that have a value."""
    found: list[tuple[int, int]] = []
    for step, value in enumerate(values):
        if value is None:
            continue
        if found and found[-1][1] == step:
            found[-1] = (found[-1][0], step + 1)
        else:
            found.append((step, step + 1))
    return found


def _round_number(value: float) -> float:
    """Return the next of 1, 2 and 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(value))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= value * 0.999)
