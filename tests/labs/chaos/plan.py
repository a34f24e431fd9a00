# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The plan of one chaos run: values that `plan_generator` draws from a seed, and that a report can print."""

from __future__ import annotations

from typing import NamedTuple

# the steps of the task files: two prepare a host, two recover it
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
    """A step that fails once on a VM, before or after its effect."""

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
    """A moment in the disturbed run.

    Attributes:
        what: `begin` of the run, a `mark` that a step writes, or a line of `azure`'s log.
        name: for a mark its `what` and step; for a line of the log its kind.
        vm: the VM of the mark.
        delay: seconds after that.
    """

    what: str
    name: str = ""
    vm: str = ""
    delay: float = 0.0

    def __str__(self) -> str:
        return " ".join(filter(None, (f"{self.delay:.2f} s after", self.what, self.name, self.vm)))


class Disturbance(NamedTuple):
    """One disturbance: its verb (`do_VERB` of `disturbances.Disturbances`), moment and arguments."""

    verb: str
    moment: Moment
    arguments: tuple[object, ...] = ()

    def __str__(self) -> str:
        return f"{self.moment}: {' '.join(map(str, (self.verb, *self.arguments)))}"


class Plan(NamedTuple):
    """The plan of one seed.

    Attributes:
        events: the events that exist when the disturbed run begins.
        disturbances: those of the disturbed run.
        again: those of a second disturbed run, after all faults are healed; empty for no second run.
        pause: seconds between the disturbed run and the next one.
        events_end: whether all events end before the next run.
        other_controller: whether the next run is on another controller, which may replace the notes of the
            first one only at the second attempt.
        cause: the kind of disturbance that this seed has in any case.
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
    other_controller: bool

    def as_text(self) -> str:
        flags = ["pipelining"] * self.pipelining + ["all events end before the next run"] * self.events_end
        flags += ["the next run is on another controller"] * self.other_controller
        lines = [
            "seed %d (%s): %s; %s"
            % (self.seed, self.cause, ", ".join(self.vms), "; ".join([*flags, f"pause of {self.pause:.1f} s"]))
        ]
        parts: tuple[object, ...] = (*self.events, *self.failures, *self.slow, *self.disturbances)
        lines += ["  " + str(part) for part in parts]
        return "\n".join(lines + ["  in a second disturbed run, " + str(part) for part in self.again])
