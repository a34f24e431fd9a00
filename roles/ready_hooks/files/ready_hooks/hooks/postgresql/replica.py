# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Whether a replica can take over, from its answer to one question."""

from __future__ import annotations

from typing import NamedTuple

from ready_hooks.hooks.postgresql.wal import lsn

# separated by "|" in the answer; functions that a primary refuses are asked of a standby only
QUESTION = """
SELECT pg_is_in_recovery(),
       (SELECT system_identifier FROM pg_control_system()),
       CASE WHEN pg_is_in_recovery() THEN pg_is_wal_replay_paused() ELSE false END,
       current_setting('recovery_min_apply_delay'),
       has_function_privilege('pg_promote(boolean,integer)', 'execute'),
       coalesce((SELECT status FROM pg_stat_wal_receiver), 'without a receiver'),
       coalesce(pg_last_wal_replay_lsn(), '0/0')
"""


class ReplicaState(NamedTuple):
    """The answer.

    Attributes:
        in_recovery: whether it is a standby.
        system: identifier that all nodes of one replication have.
        paused: whether an administrator paused the replay.
        delay: by which the replay is late on purpose; "0" means none.
        may_promote: whether the hook's role can promote it.
        receiver: status of its connection to the primary.
        replayed: position.
    """

    in_recovery: bool
    system: str
    paused: bool
    delay: str
    may_promote: bool
    receiver: str
    replayed: int


def replica_state(answer: str) -> ReplicaState:
    """Return the answer to QUESTION. Raises ValueError."""
    words = answer.split("|")
    if len(words) != len(ReplicaState._fields):
        raise ValueError(f"expected {len(ReplicaState._fields)} columns, not {answer!r}")
    recovery, system, paused, delay, may_promote, receiver, replayed = words
    return ReplicaState(recovery == "t", system, paused == "t", delay, may_promote == "t", receiver, lsn(replayed))


def refusal(replica: ReplicaState, system: str, written: int, most_lag: int) -> tuple[str, str] | None:
    """Return the problem and the remedy if the replica must not take over, or None.

    `system` and `written` are the identifier and the position of the primary; `most_lag` is in bytes.
    """
    if not replica.in_recovery:
        return "it is a primary, not a replica", "correct the option replica"
    if replica.system != system:
        return "it replicates another server", "correct the option replica"
    if not replica.may_promote:
        return "the role of the hook must not call pg_promote", "grant it EXECUTE on pg_promote"
    if replica.paused:
        return "its replay is paused", "SELECT pg_wal_replay_resume()"
    if replica.delay != "0":
        return f"its replay is late on purpose (recovery_min_apply_delay = {replica.delay})", "name another replica"
    if replica.receiver != "streaming":
        return f"it does not stream from the primary ({replica.receiver})", "repair its replication"
    if written - replica.replayed > most_lag:
        lag = written - replica.replayed
        return f"it lags too far: {lag} bytes, at most {most_lag} are allowed", "repair it, or set most_lag"
    return None
