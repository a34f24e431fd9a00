# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""Turns bus events into inputs of the reducer, and executes its actions through ``Ports``.

It does not import Salt.
"""

from __future__ import annotations

import logging
import time
import urllib.parse
from collections import deque
from typing import Any, Callable, Mapping, NamedTuple, Protocol

from . import signature
from .answers import printable
from .messages import (
    Action,
    Announce,
    Hint,
    Input,
    Known,
    PublishFailed,
    PublishJob,
    Reply,
    Request,
    Returned,
    Save,
    SaveName,
    Tick,
)
from .reducer import reduce, restored
from .settings import Settings
from .state import State
from .store import Store, StoreError

log = logging.getLogger(__name__)

REQUEST = "azure_events/request/"
REPLY = "azure_events/reply/"
EVENT = "salt/azure_events/"
HOOK = "salt/netapi/hook/azure_events"

# seconds: between two reads of the master's keys on behalf of events, for a return to reach the job
# cache, before a failed write is repeated
_KEYS_INTERVAL = 5.0
_JOB_CACHE_TIMEOUT = 10.0
_WRITE_RETRY_DELAY = 5.0
# seconds between two decisions without an input
_TICK_INTERVAL = 0.5
# jobs and requests that are remembered
_MAX_JOBS = 20000
_MAX_REQUESTS = 1000


class PublishError(Exception):
    """A job could not be published."""


class JobCacheError(Exception):
    """The master's job cache could not be read."""


class Ports(Protocol):
    """The services of a master that the engine uses."""

    def publish(self, function: str, minions: tuple[str, ...], kwargs: Mapping[str, Any]) -> str:
        """Publish a job of the module azure_events and return its ID; raise PublishError on failure."""

    def send(self, tag: str, data: Mapping[str, Any]) -> None:
        """Send an event on the master's bus."""

    def known(self) -> Known:
        """Return the minions that take part now."""

    def stored_return(self, job_id: str, minion: str) -> Mapping[str, Any] | None:
        """Return a minion's return from the master's job cache, or None while it is not there.

        Unlike an event on the bus it cannot be forged by another minion. Raises JobCacheError if
        the cache cannot be read.
        """


class _Return(NamedTuple):
    """A minion's return that was announced on the bus, and until when (monotonic) to look for it in the job cache."""

    job_id: str
    until: float


class MaintenanceEngine:
    """The engine, given the events of the bus and the time.

    ``secret`` signs the runner's requests. ``clock`` returns monotonic seconds, ``wall`` seconds since
    1970.
    """

    def __init__(
        self,
        settings: Settings,
        ports: Ports,
        store: Store,
        secret: bytes,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._ports = ports
        self._store = store
        self._secret = secret
        self._clock = clock
        self._wall = wall
        self.state = State(settings)
        self._jobs: dict[str, int] = {}
        self._returns: dict[tuple[int, str], _Return] = {}
        self._requests: dict[str, float] = {}
        self._unwritten: set[str] = set()
        self._unwritten_names: dict[str, str] = {}
        self._write_at = clock()
        self._keys_at = clock()
        self._keys_wanted = True
        self._missing: frozenset[str] = frozenset()
        self._is_open = False
        self._has_changed = False
        self._tick_at = clock()

    def open(self) -> None:
        """Read the state of an earlier engine. After a failure it is read before anything is written."""
        try:
            loaded = self._store.load(self._clock())
        except StoreError as error:
            self._note_problem(error)
            return
        if loaded.problem:
            log.error("azure_events: %s", loaded.problem)
        self._is_open = True
        self.state = restored(self.state, loaded.maintenances, loaded.names)

    def take(self, tag: str, data: Any) -> None:
        """Handle one event of the bus."""
        parts = tag.split("/")
        if not isinstance(data, Mapping):
            return
        if tag.startswith("salt/beacon/") and len(parts) == 5 and parts[3] == "azure_events":
            self._reduce(Hint(parts[2]))
        elif tag.startswith("salt/minion/") and len(parts) == 4 and parts[3] == "start":
            self._keys_wanted = self._keys_wanted or parts[2] not in self.state.names.accepted
            self._reduce(Hint(parts[2], started=True))
        elif tag.startswith("salt/job/") and len(parts) == 5 and parts[3] == "ret" and parts[2] in self._jobs:
            self._expect_return(self._jobs[parts[2]], parts[2], parts[4])
        elif tag == HOOK:
            # sent by the reactor file azure_events_hint.sls of another master
            post = data.get("post")
            self._reduce(Hint(str(post.get("minion")) if isinstance(post, Mapping) else ""))
        elif tag.startswith(REQUEST):
            self._take_request(tag[len(REQUEST) :], data)

    @property
    def is_busy(self) -> bool:
        """Return True if a return is expected in the job cache, or an event is not over.

        The caller then needs to call `tick` ten times a second.
        """
        return bool(self._returns or self.state.maintenances)

    def tick(self) -> None:
        """Do what is due now. The caller calls it several times a second."""
        now = self._clock()
        if (self._keys_wanted and now >= self._keys_at) or now >= self._keys_at + self.state.settings.sweep:
            self._keys_wanted = False
            self._keys_at = now + _KEYS_INTERVAL
            self._learn()
        self._read_returns(now)
        if (self._unwritten or self._unwritten_names) and now >= self._write_at:
            self._flush()
        if self._has_changed or now >= self._tick_at:
            self._tick_at = now + _TICK_INTERVAL
            self._reduce(Tick(self._wall()))
            self._has_changed = False

    def _learn(self) -> None:
        """Read which minions take part.

        Salt reports a failed read as one without minions, which is no read and is soon repeated. A minion is gone when
        two reads in a row lack it.
        """
        known, names = self._ports.known(), self.state.names
        if not known.accepted:
            self._keys_wanted = True
            return
        missing = names.accepted.union(names.observed) - known.accepted
        gone = missing & self._missing
        self._missing = missing - gone
        self._keys_wanted = self._keys_wanted or bool(self._missing)
        pillar = {minion: vm for minion, vm in names.pillar.items() if minion in self._missing}
        self._reduce(Known(known.accepted | self._missing, {**pillar, **known.pillar}))
        forgotten = [minion for minion in names.observed if minion in gone]
        if forgotten:
            try:
                self._store.forget_names(forgotten)
            except StoreError as error:
                log.error("azure_events: %s", error)

    def _expect_return(self, token: int, job_id: str, minion: str) -> None:
        """Look for a return in the job cache if the job awaits it; any minion can send its event."""
        job = self.state.jobs.get(token)
        if job is not None and minion in job.minions:
            self._returns[token, minion] = _Return(job_id, self._clock() + _JOB_CACHE_TIMEOUT)

    def _read_returns(self, now: float) -> None:
        for (token, minion), one in list(self._returns.items()):
            stored, reason = None, "it is not there"
            try:
                stored = self._ports.stored_return(one.job_id, minion)
            except JobCacheError as error:
                reason = str(error)
            if stored is None and now < one.until:
                continue
            del self._returns[token, minion]
            if stored is not None:
                self._reduce(Returned(token, minion, stored.get("return")))
            else:
                log.warning(
                    "azure_events: the return of %s for job %s is ignored, because it is not in the job cache: %s",
                    minion,
                    one.job_id,
                    reason,
                )

    def _take_request(self, request_id: str, data: Mapping[str, Any]) -> None:
        wall = self._wall()
        self._requests = {known: until for known, until in self._requests.items() if until > wall}
        if request_id in self._requests:
            return  # the runner sends it again until it gets the reply
        is_genuine = data.get("request_id") == request_id and signature.is_genuine(data, self._secret, wall)
        if not is_genuine or len(self._requests) >= _MAX_REQUESTS:
            reason = f"{_MAX_REQUESTS} others came before" if is_genuine else "it was not signed by this master"
            log.warning("azure_events: a request on the bus is ignored: %s", reason)
            return
        self._requests[request_id] = wall + 2 * signature.REQUEST_LIFETIME
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(wall))
        texts = {key: str(data.get(key) or "") for key in ("do", "event_id", "by")}
        log.info("azure_events: %(by)s requests %(do)s %(event_id)s", texts)
        self._reduce(Request(request_id, at=at, force=data.get("force") is True, **texts))

    def _reduce(self, given: Input) -> None:
        self._has_changed = True
        inputs: deque[Input] = deque([given])
        while inputs:
            self.state, actions = reduce(self.state, inputs.popleft(), self._clock())
            self._write(actions)
            for action in actions:
                inputs.extend(self._execute(action))

    def _execute(self, action: Action) -> list[Input]:
        if isinstance(action, PublishJob):
            try:
                if action.function == "approve_prepared" and self.state.unwritten:
                    # what the same step changed is not on the disk
                    raise PublishError(self.state.unwritten)
                job_id = self._ports.publish(action.function, action.minions, action.kwargs)
            except PublishError as error:
                log.error("azure_events: a job for %d minions could not be published: %s", len(action.minions), error)
                return [PublishFailed(action.job, str(error))]
            self._jobs[job_id] = action.job
            while len(self._jobs) > _MAX_JOBS:
                del self._jobs[next(iter(self._jobs))]
        elif isinstance(action, Announce):
            log.info("azure_events: event %s: %s", action.event_id, action.step)
            self._ports.send(f"{EVENT}{urllib.parse.quote(action.event_id, safe='')}/{action.step}", action.data)
        elif isinstance(action, Reply):
            # a request may be the first that could not be written
            self._ports.send(REPLY + action.request_id, {**action.data, "problem": printable(self.state.unwritten)})
        return []

    def _write(self, actions: list[Action]) -> None:
        """Write the saves among the actions, and earlier failed writes, in one transaction."""
        keys = [action.key for action in actions if isinstance(action, Save)]
        names = {action.minion: action.vm for action in actions if isinstance(action, SaveName)}
        self._unwritten.update(keys)
        self._unwritten_names.update(names)
        if keys or names:
            self._flush()

    def _flush(self) -> None:
        """Write everything that is not written yet."""
        if not self._is_open:
            self.open()
        known = {**self.state.over, **self.state.maintenances}
        try:
            if not self._is_open:
                raise StoreError(self.state.unwritten)
            self._store.save({key: known.get(key) for key in self._unwritten}, self._unwritten_names)
        except StoreError as error:
            # the store may have replaced a damaged file
            self._unwritten.update(known)
            self._unwritten_names.update(self.state.names.observed)
            self._note_problem(error)
            self._write_at = self._clock() + _WRITE_RETRY_DELAY
        else:
            self._unwritten, self._unwritten_names = set(), {}
            self.state = self.state._replace(unwritten="")

    def _note_problem(self, error: StoreError) -> None:
        if str(error) != self.state.unwritten:
            log.error("azure_events: %s; no event is approved until the file can be written", error)
        self.state = self.state._replace(unwritten=str(error))
