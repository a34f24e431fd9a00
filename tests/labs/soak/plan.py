# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The plan of one run: values that `plan_generator` draws from a seed, and that a report can print."""

from __future__ import annotations

from typing import NamedTuple

VM = "vm1"
PREPARE, EMERGENCY, STARTED, RECOVER = "prepare", "emergency", "started", "recover"


class Hook(NamedTuple):
    """One hook; ``does``: a name of hooks.BODIES; ``persists``: whether its effect outlives a reboot."""

    stage: str
    name: str
    does: str
    persists: bool = False

    @property
    def path(self) -> str:
        return f"{self.stage}/{self.name}"


class Setup(NamedTuple):
    """The configuration of the host.

    Attributes:
        leader: the key of the configuration.
        when_started: the key of the configuration.
        skew: seconds by which the host's own clock is wrong from the start.
        operator: whether an operator repeats failed recoveries at the end, instead of waiting for
            the daemon.
    """

    hooks: tuple[Hook, ...]
    leader: str = "self-only"
    when_started: str = "stop"
    skew: int = 0
    operator: bool = False


class Action(NamedTuple):
    """One action: its verb (`do_VERB` of `actions.Actions`) and printable arguments."""

    verb: str
    arguments: tuple[object, ...] = ()

    def __str__(self) -> str:
        return " ".join(map(str, (self.verb, *self.arguments)))


class Plan(NamedTuple):
    """One run. ``is_long``: many events in one process, whose memory and descriptors are compared."""

    seed: int
    setup: Setup
    actions: tuple[Action, ...]
    is_long: bool = False

    def as_text(self) -> str:
        setup = self.setup
        lines = [f"seed {self.seed}{', long' if self.is_long else ''}"]
        operator = ", an operator recovers" * setup.operator
        lines.append(
            "  leader %s, when_started %s, clock wrong by %d s%s"
            % (setup.leader, setup.when_started, setup.skew, operator)
        )
        lines += [f"  {hook.path} {hook.does}{', persists' if hook.persists else ''}" for hook in setup.hooks]
        return "\n".join(lines + ["    " + str(action) for action in self.actions])
