# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Decides the recovery after a switchover, also after one that was killed at any point."""

from __future__ import annotations

import enum


class Phase(str, enum.Enum):
    """How far a switchover is. The record has it before the action that it names."""

    STOPPING = "stopping"  # no promotion was sent
    PROMOTING = "promoting"  # a promotion may have been sent; the replica had all records before
    PROMOTED = "promoted"


class State(str, enum.Enum):
    """The state of a server."""

    PRIMARY = "primary"
    STANDBY = "standby"
    STOPPED = "stopped"  # this one only
    UNREACHABLE = "unreachable"  # the other one only


class Action(enum.Enum):
    """The ways of a recovery."""

    KEEP = "this server is the primary already"
    START_AS_PRIMARY = "start this server as the primary again"
    FINISH_PROMOTION = "promote the other server, then rejoin"
    REJOIN = "make this server a standby of the other one"
    FAIL_BOTH_PRIMARY = "fail: both are primaries"
    FAIL_UNREACHABLE = "fail: only the other server knows whether it is the primary"
    FAIL_NO_PRIMARY = "fail: neither is a primary"


def decide(phase: Phase, own: State, other: State) -> Action:
    """Return the action that cannot lead to two primaries and loses no acknowledged write.

    A promotion that was sent can take effect at any later time. Therefore the old primary does not
    start as a primary in the phase PROMOTING; the promotion is completed.
    """
    if other is State.PRIMARY:
        return Action.FAIL_BOTH_PRIMARY if own is State.PRIMARY else Action.REJOIN
    if phase is Phase.STOPPING:
        return Action.KEEP if own is State.PRIMARY else Action.START_AS_PRIMARY
    if other is State.UNREACHABLE:
        return Action.FAIL_UNREACHABLE
    if own is State.PRIMARY:
        return Action.KEEP
    return Action.FINISH_PROMOTION if phase is Phase.PROMOTING else Action.FAIL_NO_PRIMARY
