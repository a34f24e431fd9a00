# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The words of the records: stages, states and causes of hook runs, and states of approvals."""

from __future__ import annotations

from enum import Enum

PREPARE = "prepare"
EMERGENCY = "emergency"
STARTED = "started"
RECOVER = "recover"
STAGES = (PREPARE, EMERGENCY, STARTED, RECOVER)

# states of a hook run
STARTING = "starting"  # written before the unit is made; a process that finds no unit begins the run again
RUNNING = "running"  # a child counts as running before it begins
OK = "ok"
FAILED = "failed"  # exit status other than 0, ended by a signal of its own, or could not be started
TIMEOUT = "timeout"  # ended at its time limit
STOPPED = "stopped"  # ended by the daemon, because the event had moved on
CUT = "cut"  # ended because its event was about to start
# the host went down, another program stopped the unit, or a process that could not write may have ended it
INTERRUPTED = "interrupted"
LOST = "lost"  # it succeeded, but a recovery or a preparation may have followed that the records lack
# a run that has not ended
OPEN_STATES = (STARTING, RUNNING)
RUN_STATES = (*OPEN_STATES, OK, FAILED, TIMEOUT, STOPPED, CUT, INTERRUPTED, LOST)


class Cause(str, Enum):
    """Why a run has its state, as its record stores it."""

    NONE = ""  # it runs, or it has succeeded
    NOT_STARTED = "not-started"  # the program could not be started
    REFUSED = "refused"  # users who are not trusted could change the program
    EXIT = "exit"  # it ended with an exit status other than 0
    SIGNAL = "signal"  # a signal ended it that the daemon had not sent
    TIME_LIMIT = "time-limit"  # it took longer than its timeout
    UNIT_STOPPED = "unit-stopped"  # another program than the daemon stopped its unit
    HOST_SHUTDOWN = "host-shutdown"  # systemd has no unit of it: the host went down, or its unit was removed
    DEADLINE = "deadline"  # the event was about to start
    MORE_URGENT = "more-urgent"  # a more urgent event needed the time
    EVENT_STARTED = "event-started"
    EVENT_OVER = "event-over"


# states of the approval of an event
SENT = "sent"  # written before the request; after a lost answer the daemon sends another one
ACCEPTED = "accepted"
REFUSED = "refused"  # IMDS refused it, and repeating it unchanged does not help
