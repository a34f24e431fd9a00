# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""One call of the reducer: a working copy of the state, and the actions so far."""

from __future__ import annotations

import math
from typing import Any, Iterable, Mapping, TypeVar, cast

from .mapping import Names
from .messages import Action, PublishJob, Save
from .state import Job, Maintenance, Member, Minion, State

Value = TypeVar("Value")

# of one minion: whatever it does, it costs no more questions
_MAX_CREDIT = 60.0
_CREDIT_PER_SECOND = 0.5


class StateUpdate:
    """Copies a part of the state when it is first changed; the state that it was made of stays as it is."""

    def __init__(self, state: State, now: float) -> None:
        self._before = state
        self.settings = state.settings
        self.now = max(now, state.now)
        self.names: Names = state.names
        # the state's own mappings until they are first changed
        self.minions = cast("dict[str, Minion]", state.minions)
        self.maintenances = cast("dict[str, Maintenance]", state.maintenances)
        self.over = cast("dict[str, Maintenance]", state.over)
        self.referred = cast("dict[str, tuple[float, float]]", state.referred)
        self._jobs: Mapping[int, Job] = state.jobs
        self._next_job = state.next_job
        self.swept_at = state.swept_at
        self.polled_at = state.polled_at
        self.disk_error = state.disk_error
        self._actions: list[Action] = []

    def finish(self) -> tuple[State, list[Action]]:
        """The new state and what is to be done."""
        state = self._before._replace(
            now=self.now,
            names=self.names,
            minions=self.minions,
            maintenances=self.maintenances,
            over=self.over,
            referred=self.referred,
            jobs=self._jobs,
            next_job=self._next_job,
            swept_at=self.swept_at,
            polled_at=self.polled_at,
            disk_error=self.disk_error,
        )
        return state, self._actions

    def add_action(self, action: Action) -> None:
        self._actions.append(action)

    def minion(self, name: str) -> Minion:
        return self.minions.get(name) or Minion()

    def set_minion(self, name: str, **changes: Any) -> None:
        self.minions = self._copy_on_write(self.minions, self._before.minions)
        self.minions[name] = self.minion(name)._replace(**changes)

    def drop_minion(self, name: str) -> None:
        self.minions = self._copy_on_write(self.minions, self._before.minions)
        self.minions.pop(name, None)

    def set_referred(self, name: str, next_at: float, pause: float) -> None:
        self.referred = self._copy_on_write(self.referred, self._before.referred)
        self.referred[name] = (next_at, pause)

    def set_maintenance(self, key: str, **changes: Any) -> None:
        self.put_maintenance(key, self.maintenances[key]._replace(**{"changed": True, **changes}))

    def put_maintenance(self, key: str, maintenance: Maintenance) -> None:
        self.maintenances = self._copy_on_write(self.maintenances, self._before.maintenances)
        self.maintenances[key] = maintenance

    def end_maintenance(self, key: str) -> None:
        """It is over, and stays in the status."""
        self.maintenances = self._copy_on_write(self.maintenances, self._before.maintenances)
        self.over = self._copy_on_write(self.over, self._before.over)
        self.over[key] = self.maintenances.pop(key)._replace(over_at=self.now)
        self.add_action(Save(key, self.over[key]))

    def forget_over(self, key: str, permanently: bool) -> None:
        self.over = self._copy_on_write(self.over, self._before.over)
        del self.over[key]
        if permanently:
            self.add_action(Save(key, None))

    def member(self, key: str, minion: str) -> Member:
        return self.maintenances[key].members.get(minion) or Member()

    def set_member(self, key: str, minion: str, **changes: Any) -> None:
        maintenance = self.maintenances[key]
        members = {**maintenance.members, minion: self.member(key, minion)._replace(**changes)}
        self.put_maintenance(key, maintenance._replace(members=members, examine=True, changed=True, work_at=-math.inf))

    def drop_member(self, key: str, minion: str) -> None:
        maintenance = self.maintenances[key]
        members = {name: member for name, member in maintenance.members.items() if name != minion}
        self.put_maintenance(key, maintenance._replace(members=members, examine=True, changed=True, work_at=-math.inf))

    def save(self, key: str, needed: bool = False) -> None:
        self.add_action(Save(key, self.maintenances[key], needed))

    def publish(self, function: str, minions: Iterable[str], key: str = "", **kwargs: Any) -> int:
        """Ask minions; returns the token."""
        asked = tuple(sorted(minions))
        for minion in asked:
            self.set_minion(minion, credit=self.credit(minion) - 1.0, credit_at=self.now)
        token = self._next_job
        self._next_job += 1
        self._jobs = {**self._jobs, token: Job(function, key, frozenset(asked), self.now)}
        self.add_action(PublishJob(token, function, asked, kwargs))
        return token

    def credit(self, minion: str) -> float:
        """Questions that the minion may be asked now; each question of a status, a preparation or a recovery needs one."""
        known = self.minion(minion)
        return min(_MAX_CREDIT, known.credit + (self.now - known.credit_at) * _CREDIT_PER_SECOND)

    def job(self, token: int) -> Job | None:
        return self._jobs.get(token)

    @property
    def last_job(self) -> int:
        """Token of the newest question."""
        return self._next_job - 1

    def close_job(self, token: int, minion: str | None = None) -> None:
        """The minion has answered, or (None) no further answer is expected."""
        jobs = dict(self._jobs)
        job = jobs.pop(token, None)
        left = job.minions - {minion} if job is not None and minion is not None else frozenset()
        if job is not None and left:
            jobs[token] = job._replace(minions=left)
        self._jobs = jobs

    def close_old_jobs(self, status_before: float, before: float) -> None:
        """No answer is expected any more to questions of before these times: those about a status, and the others."""
        old = {
            token
            for token, job in self._jobs.items()
            if job.asked_at < (status_before if job.function == "status" else before)
        }
        if old:
            self._jobs = {token: job for token, job in self._jobs.items() if token not in old}

    @staticmethod
    def _copy_on_write(mapping: dict[str, Value], before: Mapping[str, Value]) -> dict[str, Value]:
        return dict(mapping) if mapping is before else mapping
