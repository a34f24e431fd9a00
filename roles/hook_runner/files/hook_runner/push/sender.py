# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Sends deliveries in a separate thread; therefore a slow endpoint blocks neither the main loop nor the poller."""

from __future__ import annotations

import queue
import threading
from typing import Callable

from hook_runner.config.settings import Settings
from hook_runner.push.credentials import UnusableSecret, credentials
from hook_runner.push.delivery_queue import Answer, Delivery
from hook_runner.push.exchange import Exchange, NoReply


class Sender(threading.Thread):
    """Sends one delivery after the other, until the process ends.

    Args:
        settings: have the URL, the paths of the secrets and the time limit.
        owners: uids that may own the secrets.
        deliver: takes each answer; called in this thread.
    """

    def __init__(self, settings: Settings, owners: frozenset[int], deliver: Callable[[Answer], None]) -> None:
        super().__init__(name="push", daemon=True)
        self._settings, self._owners, self._deliver = settings, owners, deliver
        self._exchange = Exchange(settings.push_url, settings.push_ca_file, settings.push_timeout)
        self._given: queue.SimpleQueue[Delivery] = queue.SimpleQueue()

    @property
    def shown_url(self) -> str:
        """Return the URL for logs."""
        return self._exchange.address.shown()

    def send(self, delivery: Delivery) -> None:
        """Send a delivery soon; an `Answer` reports the result. For any thread."""
        self._given.put(delivery)

    def run(self) -> None:
        """Send until the process ends."""
        while True:
            self._deliver(self.attempt(self._given.get()))

    def attempt(self, delivery: Delivery) -> Answer:
        """Send a delivery once; return the result."""
        number = delivery.number
        try:
            headers = credentials(self._settings, delivery.body, self._owners)
            reply = self._exchange.post(delivery.body, headers)
        except (UnusableSecret, NoReply) as error:
            return Answer(number, None, str(error))
        except Exception as error:  # pylint: disable=broad-exception-caught  # no error may end the thread; the text of an unknown one may have a secret
            return Answer(number, None, f"the push causes an error of this program: {error.__class__.__name__}")
        if 200 <= reply.status < 300:
            return Answer(number, reply.status)
        return Answer(number, reply.status, f"{self.shown_url} answered {reply.status}", reply.retry_after)
