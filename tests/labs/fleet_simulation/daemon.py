# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""One process of the hook runner in virtual time: the real runner, poller and records; hooks are simulated."""

from __future__ import annotations

import logging
import math
import queue
from collections.abc import Callable
from datetime import datetime
from typing import Any

from azure_scheduled_events.document import EventDocument, ScheduledEvent
from azure_scheduled_events.errors import ImdsError
from fleet_simulation.profiles import Profile
from hook_runner.clock import ServerClock
from hook_runner.config.settings import Settings
from hook_runner.imds_health import ImdsHealth
from hook_runner.log import log_to
from hook_runner.reporting.status import to_data
from hook_runner.runner import Runner
from hook_runner.service.inbox import Message
from hook_runner.service.poller import Poller
from maintenance_world.units import MortalStore, VirtualRuns

NEVER = math.inf
# shortest pause between two polls in seconds
SHORTEST = 0.1
# seconds by which a tick comes late at most
LATEST = 30.0
# seconds until the answer of a poll that is under way
ANSWER_IN = 1.0


class ImdsOfHost:
    """IMDS as one host reaches it, with the interface of the helper's client.

    ``events`` returns a document and ``approve`` takes an EventId; both may raise ImdsError.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        events: Callable[[], EventDocument],
        approve: Callable[[str], None],
        instance: dict[str, Any],
    ) -> None:
        self.requests_sent = 0
        self.versions_of_a_poll = 1
        self._clock = clock
        self._events, self._approve, self._instance = events, approve, instance

    def events(self, within: float | None = None) -> EventDocument:
        self.requests_sent += 1
        return self._events()._replace(sent_at=self._clock(), sent_by=self._clock())

    def approve(self, event_id: str, within: float | None = None) -> None:
        self.requests_sent += 1
        self._approve(event_id)

    def instance(self, within: float | None = None) -> dict[str, Any]:
        self.requests_sent += 1
        return self._instance


class CountingRunner(Runner):
    """Counts the approvals that the poller has not answered yet."""

    approvals_waiting = 0

    def approval_answered(self, key: str, error: ImdsError | None) -> None:
        self.approvals_waiting -= 1
        super().approval_answered(key, error)

    def approval_withheld(self, key: str) -> None:
        self.approvals_waiting -= 1
        super().approval_withheld(key)


class Daemon:
    """One process.

    ``settings`` are those of the profile, with the paths of this host. ``monotonic`` and ``wall`` are the host's
    clocks; ``boot`` identifies the boot. ``is_poll_under_way`` is called with the EventId of each decision to approve;
    it returns whether the answer of a poll comes before the poller can send it.
    """

    def __init__(
        self,
        profile: Profile,
        settings: Settings,
        imds: ImdsOfHost,
        runs: VirtualRuns,
        monotonic: Callable[[], float],
        wall: Callable[[], datetime],
        boot: str,
        is_poll_under_way: Callable[[str], bool],
    ) -> None:
        self._is_poll_under_way = is_poll_under_way
        # approvals that the poller takes when the poll that is under way has ended
        self._after_poll: list[ScheduledEvent] = []
        self._monotonic, self._runs = monotonic, runs
        self.clock = ServerClock(monotonic, wall)
        log_to(logging.NullHandler())
        self.health = ImdsHealth()
        self.store = MortalStore(settings.state_directory, boot, lambda text: None, self.clock.now)
        self.store.load()
        self._inbox: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self._poller = Poller(
            imds,  # type: ignore[arg-type]  # has the methods that the poller calls
            settings,
            self.clock,
            self.health,
            self._inbox,  # type: ignore[arg-type]  # has the method that the poller calls
            lambda seconds: None,
        )
        self._next_poll = self._tick_at = self._monotonic()
        self._wants_all = True
        self.runner = CountingRunner(
            settings,
            profile.hooks,
            self.store,
            runs,  # type: ignore[arg-type]  # has the methods that the runner calls
            self.clock,
            self.health,
            self._send,
        )

    @property
    def is_idle(self) -> bool:
        """Whether no event is known and nothing is left to do."""
        return not self.runner.has_events

    def status(self) -> dict[str, Any]:
        """Return what `status --json` prints."""
        return to_data(self.runner)

    def poll_soon(self, seconds: float) -> None:
        """Poll within these seconds: the document has changed since the last poll."""
        self._next_poll = min(self._next_poll, self._monotonic() + seconds)

    def next_poll_in(self) -> float:
        """Return the seconds until the next poll."""
        return max(0.0, self._next_poll - self._monotonic())

    def step(self, is_unsettled: bool, laziness: float) -> float:
        """Do what the main loop does once; return the seconds until it has something to do again.

        Args:
            is_unsettled: whether the next document may be another one.
            laziness: factor by which ticks that only wait for time come later than the daemon wants, up to LATEST.
        """
        is_due = self._monotonic() >= self._tick_at - 1e-6
        if self._monotonic() >= self._next_poll - 1e-6:
            self._next_poll = self._monotonic() + max(SHORTEST, self._poller.poll_once())
            while self._after_poll:
                self._poller.approve(self._after_poll.pop(0))
        if not self._inbox.empty() or is_due or self._runs.has_result():
            while not self._inbox.empty():
                self._inbox.get()(self.runner)
            self.runner.tick()
            self._wants_all = self.runner.awaits_document
            self._poller.deliver_unchanged(self._wants_all)
            self._tick_at = self._monotonic() + self._tick_in(laziness)
        if self.runner.approvals_waiting > len(self._after_poll):
            self._next_poll = self._monotonic() + 0.01
        polls = is_unsettled or self._wants_all or bool(self.health.error) or self.runner.approvals_waiting
        return min(max(0.0, self._tick_at - self._monotonic()), self.next_poll_in() if polls else NEVER)

    def _tick_in(self, laziness: float) -> float:
        """Return the seconds until the passing of time requires a tick."""
        due, check_at = self.runner.machine.due_in(self.runner.now), self._runs.next_check_in()
        pause = NEVER if due is None else min(due * laziness, due + LATEST)
        return pause if check_at is None else min(pause, check_at - self._monotonic() + 0.002)

    def _send(self, event: ScheduledEvent) -> None:
        self.runner.approvals_waiting += 1
        if self._is_poll_under_way(event.event_id):
            self._after_poll.append(event)
            self._next_poll = self._monotonic() + ANSWER_IN
        else:
            self._poller.approve(event)
