# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""The working copy of the state, and the actions, of one call of the reducer."""

from __future__ import annotations

import math
from typing import Any, Iterable, Mapping, TypeVar, cast

from .mapping import Names
from .messages import Action, PublishJob, Save
from .state import Job, Maintenance, Member, Minion, State

Value = TypeVar("Value")

# limits for the jobs that one minion can cause: at once, and per second
_MAX_CREDIT = 60.0
_CREDIT_PER_SECOND = 0.5


class StateUpdate:
    """Collects the changes and actions of one input.

    A part of the state is copied when it is first changed; the state before stays as it is.
    """

    def __init__(self, state: State, now: float) -> None:
        self._before = state
        self.settings = state.settings
        self.unwritten = state.unwritten
        self.now = max(now, state.now)
        self.names: Names = state.names
        # the state's own mappings until they are first changed
        self.minions = cast("dict[str, Minion]", state.minions)
        self.maintenances = cast("dict[str, Maintenance]", state.maintenances)
        self.over = cast("dict[str, Maintenance]", state.over)
        self._jobs: Mapping[int, Job] = state.jobs
        self._next_job = state.next_job
        self.swept_at = state.swept_at
        self.polled_at = state.polled_at
        self._actions: list[Action] = []

    def finish(self) -> tuple[State, list[Action]]:
        """Return the new state, and the actions to execute."""
        state = self._before._replace(
            now=self.now,
            names=self.names,
            minions=self.minions,
            maintenances=self.maintenances,
            over=self.over,
            jobs=self._jobs,
            next_job=self._next_job,
            swept_at=self.swept_at,
            polled_at=self.polled_at,
        )
        return state, self._actions

    def add_action(self, action: Action) -> None:
        """Add an action to execute."""
        self._actions.append(action)

    def minion(self, name: str) -> Minion:
        """Return the state of a minion."""
        return self.minions.get(name) or Minion()

    def set_minion(self, name: str, **changes: Any) -> None:
        """Change fields of a minion."""
        self.minions = self._copy_on_write(self.minions, self._before.minions)
        self.minions[name] = self.minion(name)._replace(**changes)

    def drop_minion(self, name: str) -> None:
        """Remove a minion that is no longer accepted."""
        self.minions = self._copy_on_write(self.minions, self._before.minions)
        self.minions.pop(name, None)

    def maintenances_of(self, minion: str) -> list[str]:
        """Return the keys of the maintenances of which the minion is a member."""
        return [key for key, maintenance in self.maintenances.items() if minion in maintenance.members]

    def set_maintenance(self, key: str, **changes: Any) -> None:
        """Change fields of a maintenance, which then counts as changed unless ``changed`` is given."""
        self.put_maintenance(key, self.maintenances[key]._replace(**{"changed": True, **changes}))

    def put_maintenance(self, key: str, maintenance: Maintenance) -> None:
        """Add or replace a maintenance."""
        self.maintenances = self._copy_on_write(self.maintenances, self._before.maintenances)
        self.maintenances[key] = maintenance

    def begin_maintenance(self, key: str, maintenance: Maintenance) -> None:
        """Add a maintenance, which replaces one with its key that is over."""
        self.put_maintenance(key, maintenance._replace(last_answer_at=self.now))
        if key in self.over:
            # Azure reuses the ID, or a minion that did not answer still has its record
            self.forget_over(key, permanently=False)

    def end_maintenance(self, key: str) -> None:
        """Move a maintenance to those that are over and still shown in the status.

        Of a held one that was not approved the hold remains.
        """
        self.maintenances = self._copy_on_write(self.maintenances, self._before.maintenances)
        ended = self.maintenances.pop(key)
        if ended.hold is not None and not ended.approved:
            self.begin_maintenance(key, Maintenance(ended.event_id, hold=ended.hold))
            self.save(key)
            return
        self.over = self._copy_on_write(self.over, self._before.over)
        self.over[key] = ended._replace(over_at=self.now)
        self.add_action(Save(key, self.over[key]))

    def forget_over(self, key: str, permanently: bool) -> None:
        """Remove a maintenance that is over; ``permanently``: from the disk too."""
        self.over = self._copy_on_write(self.over, self._before.over)
        del self.over[key]
        if permanently:
            self.add_action(Save(key, None))

    def member(self, key: str, minion: str) -> Member:
        """Return the state of a minion in a maintenance."""
        return self.maintenances[key].members.get(minion) or Member()

    def set_member(self, key: str, minion: str, **changes: Any) -> None:
        """Change fields of a minion in a maintenance."""
        maintenance = self.maintenances[key]
        members = {**maintenance.members, minion: self.member(key, minion)._replace(**changes)}
        self.put_maintenance(key, maintenance._replace(members=members, examine=True, changed=True, work_at=-math.inf))

    def drop_member(self, key: str, minion: str) -> None:
        """Remove a minion from a maintenance."""
        maintenance = self.maintenances[key]
        members = {name: member for name, member in maintenance.members.items() if name != minion}
        self.put_maintenance(key, maintenance._replace(members=members, examine=True, changed=True, work_at=-math.inf))

    def save(self, key: str) -> None:
        """Write a maintenance."""
        self.add_action(Save(key, self.maintenances[key]))

    def publish(self, function: str, minions: Iterable[str], key: str = "", **kwargs: Any) -> int:
        """Publish a job for the minions, and return its token."""
        asked = tuple(sorted(minions))
        for minion in asked:
            self.set_minion(minion, credit=self.credit(minion) - 1.0, credit_at=self.now)
        token = self._next_job
        self._next_job += 1
        self._jobs = {**self._jobs, token: Job(function, key, frozenset(asked), self.now)}
        self.add_action(PublishJob(token, function, asked, kwargs))
        return token

    def credit(self, minion: str) -> float:
        """Return the number of jobs that the minion may be sent now."""
        known = self.minion(minion)
        return min(_MAX_CREDIT, known.credit + (self.now - known.credit_at) * _CREDIT_PER_SECOND)

    def job(self, token: int) -> Job | None:
        """Return the job of that token, or None if no return is expected."""
        return self._jobs.get(token)

    @property
    def last_job(self) -> int:
        """Return the token of the newest job."""
        return self._next_job - 1

    def close_job(self, token: int, minion: str | None = None) -> None:
        """Expect no further return of this minion, or (None) of any minion."""
        jobs = dict(self._jobs)
        job = jobs.pop(token, None)
        left = job.minions - {minion} if job is not None and minion is not None else frozenset()
        if job is not None and left:
            jobs[token] = job._replace(minions=left)
        self._jobs = jobs

    def close_old_jobs(self, status_before: float, before: float) -> None:
        """Expect no further return of jobs from before these times: polls, and other jobs."""
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
