# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""What is to happen in one chaos run: values that `drawing` makes from a seed, and that a report can print."""

from __future__ import annotations

from typing import NamedTuple

# the steps of the caller's task files: two that prepare a host, two that bring it back
DRAIN, SETTLE, WARM, JOIN = "drain", "settle", "warm", "join"
PREPARE, RECOVER = (DRAIN, SETTLE), (WARM, JOIN)


class Event(NamedTuple):
    """An event of Azure; times in seconds."""

    kind: str
    resources: tuple[str, ...]
    notice: int
    started_for: int
    impact_for: int

    def __str__(self) -> str:
        return "%s of %s, notice %d s, started for %d s" % (
            self.kind,
            ",".join(self.resources),
            self.notice,
            self.started_for,
        )


class Failure(NamedTuple):
    """A step that fails once on a VM, before or after it has had its effect."""

    vm: str
    step: str
    after_effect: bool

    def __str__(self) -> str:
        return f"{self.step} fails once on {self.vm}, {'after' if self.after_effect else 'before'} its effect"


class Slow(NamedTuple):
    """A step that takes seconds on a VM."""

    vm: str
    step: str
    seconds: float

    def __str__(self) -> str:
        return f"{self.step} takes {self.seconds:.1f} s on {self.vm}"


class Moment(NamedTuple):
    """When something is done in the disturbed run.

    Attributes:
        what: `begin` of the run, a `mark` that a step leaves, or a line of `azure`'s log.
        name: of a mark: step and word; of a line: its kind.
        vm: whose mark.
        delay: seconds after that.
    """

    what: str
    name: str = ""
    vm: str = ""
    delay: float = 0.0

    def __str__(self) -> str:
        return " ".join(filter(None, (f"{self.delay:.2f} s after", self.what, self.name, self.vm)))


class Disturbance(NamedTuple):
    """One thing that is done: the name of a method of `disturbances.Disturbances`, its moment and its arguments."""

    verb: str
    moment: Moment
    arguments: tuple[object, ...] = ()

    def __str__(self) -> str:
        return f"{self.moment}: {' '.join(map(str, (self.verb, *self.arguments)))}"


class Plan(NamedTuple):
    """One seed.

    Attributes:
        vms: their names.
        events: those that are there when the disturbed run begins.
        disturbances: those of the disturbed run.
        again: those of a second one, which begins when all is healed; without any there is none.
        pause: seconds between the disturbed run and the next one.
        events_end: whether all events end before the next run.
        pipelining: Ansible's setting.
        elsewhere: whether the next run is on another controller, which may replace the notes of the
            first one only at the second attempt.
        cause: the kind of disturbance that this seed is for.
    """

    seed: int
    cause: str
    vms: tuple[str, ...]
    events: tuple[Event, ...]
    failures: tuple[Failure, ...]
    slow: tuple[Slow, ...]
    disturbances: tuple[Disturbance, ...]
    again: tuple[Disturbance, ...]
    pause: float
    events_end: bool
    pipelining: bool
    elsewhere: bool

    def as_text(self) -> str:
        """For people."""
        flags = ["pipelining"] * self.pipelining + ["all events end before the next run"] * self.events_end
        flags += ["the next run is on another controller"] * self.elsewhere
        lines = [
            "seed %d (%s): %s; %s"
            % (self.seed, self.cause, ", ".join(self.vms), "; ".join([*flags, f"pause of {self.pause:.1f} s"]))
        ]
        things: tuple[object, ...] = (*self.events, *self.failures, *self.slow, *self.disturbances)
        lines += ["  " + str(thing) for thing in things]
        return "\n".join(lines + ["  in a second disturbed run, " + str(thing) for thing in self.again])
