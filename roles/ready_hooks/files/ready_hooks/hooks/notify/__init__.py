# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Sends a notification of each stage of an event."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from ready_hooks.core import report
from ready_hooks.core.deadline import Deadline
from ready_hooks.core.errors import HookError, UsageError
from ready_hooks.core.hook import STAGES, Finding, ReadyHook, Run
from ready_hooks.core.occurrences import Occurrence, Occurrences
from ready_hooks.hooks.notify.apprise import Apprise
from ready_hooks.hooks.notify.notify_options import OPTIONS
from ready_hooks.hooks.notify.stage_record import stage_record
from ready_hooks.hooks.notify.webhook import WebHook

# Slack takes a text between these characters for a command, in each element of a message
_WITHOUT_COMMANDS = str.maketrans("<>", "()")


class Notify(ReadyHook):
    """Send notifications. A notification that cannot be sent is a warning, or an error if it is required.

    The record has the events of which this hook has sent a notification: a stage that runs again
    after a reboot sends no second one, and that of the end has its duration.
    """

    name = "notify"
    summary = "Sends a notification of each stage of an event to a web hook, or to other services with apprise."
    options = OPTIONS
    stages = STAGES
    only_reports = True

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        given = [name for name in ("url", "url_file", "apprise") if run.options[name] is not None]
        if len(given) != 1:
            raise UsageError("url", f"expected one of url, url_file and apprise, not {' and '.join(given) or 'none'}")
        if "apprise" in given and not isinstance(run.options["body"] or "", str):
            raise UsageError("body", "apprise needs a text")
        if run.options["change_record"] and ("apprise" in given or run.options["body"] is not None):
            raise UsageError("change_record", "it is a body for a web hook; remove apprise and body")
        self._service = Apprise(run) if "apprise" in given else WebHook(run)
        self._occurrences = Occurrences(run)

    def check(self) -> Iterator[Finding]:
        return self._service.check()

    def prepare(self) -> None:
        entry = self._occurrences.enter()
        if entry.event.stage in entry.reported:
            self.run.say(f"the notification of stage {entry.event.stage} was sent before")
        elif self._send(entry, self._limit()):
            self._occurrences.mark_reported()

    def recover(self) -> None:
        ended = self._occurrences.ended()
        if not ended:
            self.run.say("this hook has not run before in this event")
        limit = self._limit()
        for entry in ended:
            self._send(entry, limit)
            self._occurrences.remove([entry])

    def _limit(self) -> Deadline:
        """Return the time limit for all notifications of this run."""
        if self.run.options["required"]:
            return self.run.deadline
        return Deadline(min(self.run.options["total"], self.run.deadline.left()))

    def _send(self, entry: Occurrence, limit: Deadline) -> bool:
        """Send the notification of an event; return whether it was sent. Raises HookError if it is required."""
        wanted = self.run.options["stages"]
        if wanted and self.run.event.stage not in wanted:
            return False
        try:
            self._service.send(self._values(entry), limit)
        except HookError as error:
            if self.run.options["required"]:
                raise
            self.run.warn(f"{self.run.name}: the notification was not sent: {error}")
            return False
        return True

    def _values(self, entry: Occurrence) -> dict[str, Any]:
        if self.run.options["change_record"]:
            return stage_record(entry, time.time())
        values = report.values(entry, time.time())
        return {name: _plain(each) if isinstance(each, str) else each for name, each in values.items()}


def _plain(text: str) -> str:
    """Return the text as one line that mentions no user and hides no link."""
    return report.one_line(text).translate(_WITHOUT_COMMANDS)


HOOK = Notify
