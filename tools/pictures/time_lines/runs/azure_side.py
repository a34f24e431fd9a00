# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A simulated Azure whose clock runs as the real one, and its own account of an event."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from support import simulator_process
from support.repository import REPOSITORY
from support.simulator_process import Simulator
from support.wait import wait_until
from tools.pictures.time_lines.recording import ANNOUNCED, OVER, STARTED, Lane, lane, moment

# the words of the simulator's log -> the steps of Azure's lane
STEPS = {"scheduled": ANNOUNCED, "started": STARTED, "finished": OVER}
# a Freeze of a live migration; its length is the simulator's choice
EVENT = {"type": "Freeze", "started_for": 9}


@contextmanager
def azure(*vms: str) -> Iterator[Simulator]:
    """Simulate an availability set of these VMs, without an event."""
    groups = {"web": {"kind": "availability_set", "vms": {name: {} for name in vms}}}
    with simulator_process.start({"groups": groups}) as running:
        yield running


class Account:
    """The entries of the simulator's log about one event.

    Attributes:
        began: Unix time of the announcement.
        not_before: seconds from the announcement to NotBefore.
    """

    def __init__(self, simulator: Simulator, event_id: str) -> None:
        self.simulator = simulator
        self.event_id = event_id
        event = simulator.get(f"/events/{event_id}")
        self.began = moment(event["appears_at"])
        self.not_before = round(moment(event["not_before"]) - self.began)

    def log(self) -> list[dict[str, Any]]:
        """Return the lines about the event."""
        lines = self.simulator.get("/log")["lines"]
        return [line for line in lines if self.event_id in (line.get("id"), *line.get("ids", ()))]

    def wait_for_end(self) -> None:
        """Wait until the event is over."""
        wait_until(lambda: any(line["what"] == "finished" for line in self.log()), "the end of the event", pause=0.5)

    def after(self, text: str) -> float:
        """Return the seconds from the announcement to a date in ISO 8601."""
        return moment(text) - self.began

    def seconds_of(self, what: str, **members: str) -> float:
        """Return the seconds of the first line of a kind; raises StopIteration without one."""
        return next(
            self.after(line["time"])
            for line in self.log()
            if line["what"] == what and all(line.get(name) == value for name, value in members.items())
        )

    def lane(self) -> Lane:
        """Return the lane of Azure."""
        steps = [(self.after(line["time"]), STEPS[line["what"]]) for line in self.log() if line["what"] in STEPS]
        return lane("Azure", steps)


def collection_version() -> dict[str, str]:
    """Return the name of the collection and the version in galaxy.yml."""
    (version,) = re.findall(r"^version: (\S+)$", (REPOSITORY / "galaxy.yml").read_text(encoding="utf-8"), re.MULTILINE)
    return {"azure_imds.scheduled_events": version}
