# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The recording of one maintenance: the steps of each actor, in seconds from the announcement."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

FOLDER = Path(__file__).with_name("recorded")
# the steps of Azure itself
ANNOUNCED, STARTED, OVER = "announced", "started", "over"


class Step(NamedTuple):
    """A moment in the lane of an actor."""

    at: float
    step: str


class Work(NamedTuple):
    """The time that a hook, a job or tasks took."""

    begin: float
    end: float
    name: str


class Lane(NamedTuple):
    """One actor: Azure, a VM or the master."""

    name: str
    steps: tuple[Step, ...]
    work: tuple[Work, ...] = ()

    def at(self, step: str) -> float:
        """Return the seconds of the first such step; raises KeyError."""
        return {each.step: each.at for each in reversed(self.steps)}[step]


class Recording(NamedTuple):
    """A run.

    Attributes:
        title: the handling, the type of the event and its VMs.
        versions: name of a program -> its version.
        not_before: seconds from the announcement to NotBefore.
        lanes: the first one is Azure.
    """

    title: str
    versions: Mapping[str, str]
    not_before: float
    lanes: tuple[Lane, ...]

    @property
    def end(self) -> float:
        """The seconds of the last step."""
        return max(step.at for lane in self.lanes for step in lane.steps)

    def as_json(self) -> str:
        """Return the content of the file."""
        lanes = [
            {
                "name": lane.name,
                "steps": [step._asdict() for step in lane.steps],
                "work": [work._asdict() for work in lane.work],
            }
            for lane in self.lanes
        ]
        return json.dumps({**self._asdict(), "lanes": lanes}, indent=1) + "\n"


def lane(name: str, steps: Sequence[tuple[float, str]], work: Sequence[tuple[float, float, str]] = ()) -> Lane:
    """Return a lane with its steps in the order of their times, in hundredths of a second."""
    return Lane(
        name,
        tuple(Step(round(at, 2), step) for at, step in sorted(steps, key=lambda step: step[0])),
        tuple(sorted(Work(round(begin, 2), round(end, 2), of) for begin, end, of in work)),
    )


def read(path: Path) -> Recording:
    """Return the recording in a file."""
    data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    lanes = tuple(
        Lane(each["name"], tuple(Step(**step) for step in each["steps"]), tuple(Work(**work) for work in each["work"]))
        for each in data["lanes"]
    )
    return Recording(data["title"], data["versions"], data["not_before"], lanes)


def moment(text: str) -> float:
    """Return the Unix time of a date in ISO 8601; without a zone it is UTC."""
    date = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return (date if date.tzinfo else datetime.fromisoformat(text + "+00:00")).timestamp()
