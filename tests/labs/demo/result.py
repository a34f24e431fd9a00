# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The result of a run, which another process may have made, and the figures of the table."""

from __future__ import annotations

import json
import math
from pathlib import Path
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
        stored: the number of rows in the database at the end.
        lost: IDs that were acknowledged and are not in the database.
        out_of_pool: server -> seconds in which HAProxy gave it no new requests.
        repeated: the number of repetitions by HAProxy.
        errors: what did not work in the run itself, such as a host that did not boot.
    """

    handling: str
    answers: tuple[Answer, ...]
    phases: tuple[Phases, ...]
    stored: int
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

    def write(self, file: Path) -> None:
        file.write_text(json.dumps(self._asdict()), encoding="utf-8")

    @staticmethod
    def read(file: Path) -> Result:
        known = json.loads(file.read_text(encoding="utf-8"))
        return Result(
            **{
                **known,
                "answers": tuple(Answer(*answer) for answer in known["answers"]),
                "phases": tuple(Phases(*phases) for phases in known["phases"]),
                "lost": tuple(known["lost"]),
                "errors": tuple(known["errors"]),
            }
        )
