# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Hands the role of the master over without the loss of an acknowledged write.

SENTINEL FAILOVER alone does not wait for the replicas, and the old master takes writes until
Sentinel reconfigures it, seconds later. Therefore writes pause first, the replicas catch up, and
the old master follows the new one before the pause ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ready_hooks.core.errors import HookError, OutOfTime
from ready_hooks.core.hook import Run
from ready_hooks.hooks.redis import state
from ready_hooks.hooks.redis.resp import RedisError
from ready_hooks.hooks.redis.servers import Sentinel, Server, shown

# phases of the record
PAUSED, BEGUN, SWITCHED = "paused", "failover begun", "switched"
# the pause outlasts the hook's wait by so many seconds: it ends by itself only after a kill
_MARGIN = 30.0
_INTERVAL = 0.1
# code of the refusal of a second failover
_IN_PROGRESS = "INPROG"


class Failover:
    """A failover of this instance; `sentinel` is one that answers."""

    def __init__(self, run: Run, server: Server, sentinel: Sentinel) -> None:
        self._run, self._server, self._sentinel = run, server, sentinel

    def fail_over(self) -> None:
        """Pause writes, wait for the replicas, fail over, and follow the new master.

        Raises:
            HookError: it was not possible. Writes continue on this instance, except if Sentinel may still fail over;
                then they wait until recover runs, or the pause ends.
        """
        earlier = self._run.record.load()
        old, run_id = self._sentinel.master(), self._server.instance().run_id
        self._run.remember({"phase": PAUSED})
        most = self._run.options["most_pause"]
        self._server.pause_writes(most + _MARGIN)
        try:
            self._wait_for_replicas(run_id, most)
            self._run.remember({"phase": BEGUN})
            # longer than this run, because a write after a promotion would be lost
            self._server.pause_writes(self._run.deadline.left() + _MARGIN)
            self._paused(run_id)
            self._begin()
        except HookError:
            self._resume(earlier)
            raise
        new = self._wait_for_end(old)
        if new == old:
            self._resume(earlier)
            raise HookError(self._sentinel.address, "it has aborted the failover", "see the log of Sentinel")
        self._run.say(f"the master is {shown(new)}")
        self.follow(new)
        self._run.remember({"phase": SWITCHED})

    def follow(self, new: tuple[str, str]) -> None:
        """Make this instance a replica of the new master, then end the pause. Raises HookError."""
        problem = self._server.follow(new)
        if problem:
            self._run.warn(f"{problem}; after a restart, this instance is a master until Sentinel reconfigures it")
        self._server.resume_writes()
        self._server.disconnect_clients()

    def _paused(self, run_id: str) -> state.Instance:
        """Return the state of this instance. Raises HookError if a restart has ended the pause."""
        found = self._server.instance()
        if found.run_id != run_id:
            raise HookError(self._server.address, "it was restarted during the failover", "run prepare again")
        return found

    def _wait_for_replicas(self, run_id: str, most: float) -> None:
        offset = self._paused(run_id).offset

        def caught_up() -> bool:
            return state.caught_up(self._paused(run_id), self._sentinel.replicas(), offset)

        if not self._run.deadline.wait_until(caught_up, most, _INTERVAL):
            raise OutOfTime(
                self._server.address,
                "the replicas do not catch up in time; writes continue here",
                "see INFO replication, or raise most_pause",
            )

    def _begin(self) -> None:
        """Let Sentinel fail over; without an answer it may do so. Raises RedisError if it refuses."""
        try:
            self._sentinel.fail_over()
        except HookError as error:
            if isinstance(error, RedisError) and error.code != _IN_PROGRESS:
                raise
            self._run.warn(f"{error}; Sentinel may fail over nevertheless")

    def _wait_for_end(self, old: tuple[str, str]) -> tuple[str, str]:
        """Return the master at the end of the failover, which is `old` if Sentinel has aborted it.

        Raises:
            OutOfTime: Sentinel may still fail over; therefore writes must not continue.
        """
        master = old

        def has_ended() -> bool:
            nonlocal master
            try:
                # in this order: the master is final once the failover has ended
                is_failing_over = self._sentinel.is_failing_over()
                master = self._sentinel.master()
            except HookError:
                return False  # a Sentinel that does not answer may fail over
            return master != old or not is_failing_over

        if not self._run.deadline.wait_until(has_ended, interval=_INTERVAL):
            raise OutOfTime(
                self._sentinel.address,
                "its failover has not ended in time, or it does not answer",
                f"writes wait until recover runs, for at most {_MARGIN:.0f} s",
            )
        return master

    def _resume(self, earlier: Mapping[str, Any] | None) -> None:
        """End the pause, and restore the record; if that is not possible, recover does it."""
        try:
            self._server.resume_writes()
        except HookError as error:
            self._run.warn(f"{error}; writes wait until recover runs, or the pause ends")
            return
        if earlier is None:
            self._run.forget()
        else:
            self._run.remember(earlier)
