# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Notifies systemd of readiness, watchdog, end and status line (sd_notify(3))."""

from __future__ import annotations

import os
import socket
from typing import Mapping


class SystemdNotifier:
    """Notifies the service manager that started this process, if there is one.

    `environment` has NOTIFY_SOCKET and WATCHDOG_USEC; by default it is that of this process.
    """

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        environment = os.environ if environment is None else environment
        self._address = environment.get("NOTIFY_SOCKET", "")
        if self._address.startswith("@"):
            self._address = "\0" + self._address[1:]
        self._status = ""
        self._pinged_at = float("-inf")
        watched = environment.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        usec = environment.get("WATCHDOG_USEC", "")
        self.watchdog = int(usec) / 1e6 if watched and usec.isdigit() else None

    def notify(self, *assignments: str) -> None:
        """Send assignments such as ``READY=1``. Errors are ignored: the daemon works without a manager."""
        if not self._address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as channel:
                channel.setblocking(False)  # a busy manager must not block the daemon
                channel.connect(self._address)
                channel.send("\n".join(assignments).encode("utf-8", "backslashreplace"))
        except OSError:
            pass

    def ping_watchdog(self, now: float) -> None:
        """Ping the watchdog, no more often than needed; ``now``: monotonic seconds."""
        if self.watchdog is not None and now - self._pinged_at >= self.watchdog / 4:
            self._pinged_at = now
            self.notify("WATCHDOG=1")

    def status(self, text: str) -> None:
        """Send the status line if it has changed."""
        if text != self._status:
            self._status = text
            self.notify("STATUS=" + text)
