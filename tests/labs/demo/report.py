# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The table of a demonstration."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from demo.result import Result

MOST_PROBLEMS = 20
ROWS: tuple[tuple[str, Callable[[Result], str]], ...] = (
    ("requests sent", lambda result: f"{len(result.answers):,}"),
    ("requests failed", lambda result: f"{len(result.failed):,}"),
    ("repetitions by HAProxy", lambda result: f"{result.repeated:,}"),
    ("slowest request", lambda result: f"{result.slowest * 1000:,.0f} ms"),
    ("99 % of requests within", lambda result: f"{result.percentile(0.99) * 1000:,.0f} ms"),
    ("database writes acknowledged", lambda result: f"{result.acknowledged:,}"),
    ("acknowledged writes lost", lambda result: f"{len(result.lost):,}"),
    ("web servers out of the pool", lambda result: f"{sum(result.out_of_pool.values()):,.0f} s"),
)


def table(results: Sequence[Result]) -> str:
    """Return the figures of all runs as a table of Markdown."""
    rows = [["", *(result.handling for result in results)], *([name, *map(of, results)] for name, of in ROWS)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["| " + " | ".join(_aligned(row, widths)) + " |" for row in rows]
    rule = "| " + " | ".join(["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]) + " |"
    return "\n".join([lines[0], rule, *lines[1:]])


def _aligned(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    return [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]


def events(result: Result) -> str:
    """Return one line for each event of a run."""
    return "\n".join(
        f"  {phase.announced:6.1f} s  {phase.kind:<8} of {phase.host:<4} by {phase.source:<8}"
        f"  approved after {_seconds(phase.approved, phase.announced)}"
        f", started after {_seconds(phase.started, phase.announced)}"
        f", over after {_seconds(phase.over, phase.announced)}"
        for phase in result.phases
    )


def problems(result: Result) -> str:
    """Return the errors, failures and losses of a run, the first ones of many."""
    found = result.problems()
    more = [f"... and {len(found) - MOST_PROBLEMS} more"] if len(found) > MOST_PROBLEMS else []
    return "\n".join("  " + line for line in found[:MOST_PROBLEMS] + more)


def _seconds(moment: float | None, begin: float) -> str:
    return "   -  " if moment is None else f"{moment - begin:4.1f} s"
