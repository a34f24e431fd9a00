# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""What systemd is told: ready, alive, stopping, and a line for `systemctl status` (sd_notify(3))."""

from __future__ import annotations

import os
import socket
from typing import Mapping


class SystemdNotifier:
    """Tells the service manager that started this process; without one it says nothing.

    Args:
        environment: where NOTIFY_SOCKET and WATCHDOG_USEC stand.
    """

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        environment = os.environ if environment is None else environment
        self._address = environment.get("NOTIFY_SOCKET", "")
        if self._address.startswith("@"):
            self._address = "\0" + self._address[1:]
        self._status = ""
        self._fed = float("-inf")
        watched = environment.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        usec = environment.get("WATCHDOG_USEC", "")
        self.watchdog = int(usec) / 1e6 if watched and usec.isdigit() else None

    def notify(self, *assignments: str) -> None:
        """Send assignments such as ``READY=1``; that nobody listens is no reason to stop."""
        if not self._address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as channel:
                channel.setblocking(False)  # a manager that does not listen must not stop the work
                channel.connect(self._address)
                channel.send("\n".join(assignments).encode("utf-8", "backslashreplace"))
        except OSError:
            pass

    def ping_watchdog(self, now: float) -> None:
        """The work goes on; sent no more often than the watchdog needs. now: monotonic seconds."""
        if self.watchdog is not None and now - self._fed >= self.watchdog / 4:
            self._fed = now
            self.notify("WATCHDOG=1")

    def status(self, text: str) -> None:
        """The status line, sent when it differs from the last one."""
        if text != self._status:
            self._status = text
            self.notify("STATUS=" + text)
