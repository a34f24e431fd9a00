# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

from __future__ import annotations

from collections.abc import Sequence


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows below their columns; the first column is aligned to the left, the others to the right."""
    lines = [columns, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(columns))]
    print(f"\n{title}")
    for line in lines:
        print(
            "  ".join(
                [line[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(line[1:], widths[1:]))]
            ).rstrip()
        )


def ratio(ours: float, other: float) -> str:
    return f"{ours / other:.2f}" if other else "-"
