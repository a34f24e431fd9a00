# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""One run of a hook: the order, the run while it lasts, and its result."""

from __future__ import annotations

import os
import pwd
import select
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import NamedTuple

from hook_runner.config.settings import Settings
from hook_runner.hooks.discovery import Hook
from hook_runner.records import FAILED, INTERRUPTED, OK, TIMEOUT, Cause

# bytes of the end of a hook's output that a result has
OUTPUT_TAIL = 4096
# the error of a run that has reached its limit
TOO_LONG = "its time limit was up"
# lines of a hook in the log in each second
LINES_PER_SECOND = 200
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_STATES = {Cause.TIME_LIMIT: TIMEOUT, Cause.UNIT_STOPPED: INTERRUPTED, Cause.HOST_SHUTDOWN: INTERRUPTED}


class RunOrder(NamedTuple):
    """One run of one hook.

    Attributes:
        number: of the run; no other run ever has it.
        input: for stdin.
        environment: all variables of the hook.
        limit: seconds after which systemd sends TERM, also without the daemon.
        kill_after: seconds between TERM and KILL.
        memo: for a daemon whose records lack the run.
    """

    number: int
    hook: Hook
    input: bytes
    environment: Mapping[str, str]
    limit: float
    kill_after: float
    memo: bytes = b""


class RunResult(NamedTuple):
    """The result of a run.

    Attributes:
        exit_status: exit status, or minus the number of the signal that ended it; None if it was
            never started, or if the status is unknown.
        output: the last part of its output, without control characters other than newline and tab.
        seconds: its duration.
        cause: NOT_STARTED, REFUSED, TIME_LIMIT, UNIT_STOPPED or HOST_SHUTDOWN; NONE if the hook ended by itself or by a
            signal.
        error: the same as a text; "" for NONE.
    """

    exit_status: int | None
    output: str = ""
    seconds: float = 0.0
    cause: Cause = Cause.NONE
    error: str = ""

    @property
    def state(self) -> str:
        """The state of the run; exit status 0 is a success, even if the hook was about to be ended."""
        return OK if self.exit_status == 0 else _STATES.get(self.cause, FAILED)


class Run(ABC):
    """A run that was started.

    Attributes:
        descriptors: are in `ends`, and readable when the hook may have ended.
        look_at: monotonic seconds of the next look at it.
        ends_at: monotonic seconds at which the daemon has to end it; infinity if systemd does.
        kill_after: seconds between TERM and KILL then.
        kill_at: monotonic seconds of the next KILL; infinity while its end has not been requested.
        is_killed: whether it has got KILL once.
    """

    def __init__(self, ends: select.epoll) -> None:
        self.descriptors: list[int] = []
        self.look_at, self.ends_at, self.kill_at = 0.0, float("inf"), float("inf")
        self.kill_after = 0.0
        self.is_killed = False
        self._ends = ends

    @abstractmethod
    def look(self) -> RunResult | None:
        """Return the result if the hook has ended; `descriptors` is empty then."""

    @abstractmethod
    def signal(self, number: int) -> None:
        """Send a signal to all processes of the hook."""

    def _watch_process(self, pid: int) -> None:
        """Get woken by the end of a process; a kernel before 5.3, or a Python for it, does not report it."""
        try:
            self._watch(os.pidfd_open(pid))
        except (AttributeError, OSError):
            pass  # or the process has ended

    def _watch(self, descriptor: int) -> None:
        self.descriptors.append(descriptor)
        self._ends.register(descriptor, select.EPOLLIN)

    def _close(self, *descriptors: int) -> None:
        for descriptor in descriptors:
            self.descriptors.remove(descriptor)
            os.close(descriptor)  # which removes it from `_ends`


def usual_variables(settings: Settings) -> dict[str, str]:
    """Return the variables that all hooks have, also when they check themselves."""
    try:
        home = pwd.getpwuid(os.geteuid()).pw_dir
    except KeyError:
        home = "/"
    return {"PATH": _PATH, "LANG": "C.UTF-8", "HOME": home, **settings.environment}


def tail_of(output: bytes) -> str:
    """Return the end of a hook's output, with "?" for each character that controls a terminal."""
    text = output[-OUTPUT_TAIL:].decode("utf-8", "replace").lstrip("\ufffd")
    return "".join(character if character.isprintable() or character in "\n\t" else "?" for character in text)
