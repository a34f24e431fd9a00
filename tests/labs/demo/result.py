# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The result of a run, and its figures as text."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from demo.load import Answer


class Phases(NamedTuple):
    """One event, in seconds from the begin of the load.

    Attributes:
        announced, started, over: as IMDS listed it.
        approved: None without an approval.
        primary: the primary of PostgreSQL at the end, or "".
    """

    kind: str
    host: str
    source: str
    announced: float
    approved: float | None
    started: float
    over: float
    primary: str


class Result(NamedTuple):
    """A run.

    Attributes:
        answers: to all requests; `due` is in seconds from the begin of the load.
        lost: IDs that were acknowledged and are not in the database.
        out_of_pool: server -> seconds in which HAProxy gave it no new requests.
        repeated: the number of repetitions by HAProxy.
        errors: what did not work in the run itself, such as a host that did not boot.
    """

    handling: str
    answers: tuple[Answer, ...]
    phases: tuple[Phases, ...]
    lost: tuple[str, ...]
    out_of_pool: dict[str, float]
    repeated: int
    errors: tuple[str, ...]

    @property
    def failed(self) -> list[Answer]:
        return [answer for answer in self.answers if answer.failure]

    @property
    def acknowledged(self) -> int:
        return len(self.answers) - len(self.failed)

    @property
    def slowest(self) -> float:
        """Seconds."""
        return max((answer.latency for answer in self.answers), default=0.0)

    def percentile(self, share: float) -> float:
        """Return the seconds within which this share of all requests had ended."""
        ordered = sorted(answer.latency for answer in self.answers)
        return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else 0.0

    def problems(self) -> list[str]:
        """Return why this run is not free of losses."""
        found = list(self.errors)
        if not self.answers:
            found.append("no request was sent")
        found += [f"{answer.order} at {answer.due:.1f} s: {answer.failure}" for answer in self.failed]
        found += [f"{order}: acknowledged, and not in the database" for order in self.lost]
        return found


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
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    rows.insert(1, ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])])
    lines = [[row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


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
