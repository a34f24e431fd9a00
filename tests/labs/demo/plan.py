# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The plan of a run: its hosts, its load, its limits of time, and its events."""

from __future__ import annotations

from typing import NamedTuple

# the host that is the primary of PostgreSQL when the event is announced
PRIMARY = "primary"


class Event(NamedTuple):
    """One event of the time table.

    Attributes:
        at: earliest seconds from the begin of the load; an event waits for the end of the one before.
        kind: Freeze, Reboot or Redeploy.
        target: a host, or PRIMARY.
        source: Platform or User.
    """

    at: float
    kind: str
    target: str
    source: str


class Limits(NamedTuple):
    """Limits in seconds, which are the same for all handlings.

    Attributes:
        transaction: the web service repeats its transaction for so long.
        server: HAProxy waits so long for the answer of a web service.
        client: the client waits so long for the whole answer.
        check: HAProxy waits so long for the answer to a health check.
    """

    transaction: float
    server: float
    client: float
    check: float


class Plan(NamedTuple):
    """A run.

    Attributes:
        webs, databases: names of hosts.
        handled: the hosts with the handling of events: all that may be affected.
        rate: requests per second.
        notice: seconds from an announcement to NotBefore.
        freeze, away: seconds of a freeze, and of the time between the power-off of a host and its boot.
        seconds, tail: least seconds of the load, and of the load after the last event.
    """

    webs: tuple[str, ...]
    databases: tuple[str, ...]
    handled: tuple[str, ...]
    rate: float
    notice: float
    freeze: float
    away: float
    seconds: float
    tail: float
    events: tuple[Event, ...]
    limits: Limits

    def impact_seconds(self, kind: str) -> float:
        return self.freeze if kind == "Freeze" else self.away


DATABASES = ("db1", "db2", "db3")

LONG = Plan(
    webs=("web1", "web2", "web3"),
    databases=DATABASES,
    handled=("web1", "web2", "web3", *DATABASES),
    rate=30.0,
    notice=20.0,
    freeze=8.0,
    away=12.0,
    seconds=262.0,
    tail=4.0,
    events=(
        Event(4, "Freeze", "web1", "Platform"),
        Event(38, "Freeze", PRIMARY, "Platform"),
        Event(76, "Reboot", "web2", "User"),
        Event(118, "Reboot", PRIMARY, "User"),
        Event(164, "Redeploy", "web3", "Platform"),
        Event(206, "Redeploy", PRIMARY, "Platform"),
    ),
    limits=Limits(transaction=8.0, server=10.0, client=15.0, check=2.0),
)

# Limits and notice are long, because this form must not depend on how busy the machine is: the
# events start by the approvals, after the preparations.
SHORT = Plan(
    webs=("web1", "web2"),
    databases=DATABASES,
    handled=("web1", "db1"),
    rate=10.0,
    notice=300.0,
    freeze=4.0,
    away=2.0,
    seconds=0.0,
    tail=2.0,
    events=(Event(1, "Reboot", "web1", "User"), Event(2, "Freeze", PRIMARY, "Platform")),
    limits=Limits(transaction=60.0, server=70.0, client=120.0, check=20.0),
)
