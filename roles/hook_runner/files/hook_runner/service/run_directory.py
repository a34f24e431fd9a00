# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The run directory with the lock, which allows one daemon at a time, and the sockets for the command."""

from __future__ import annotations

import grp
import logging
import os

from azure_scheduled_events import durable_file
from hook_runner.config.settings import ConfigError, Settings
from hook_runner.permissions import location_problem, make_folder
from hook_runner.service.control_requests import ControlRequests
from hook_runner.service.control_socket import NAME, STATUS_NAME, ControlSocket, remove_stale

log = logging.getLogger(__name__)


class AlreadyRunning(Exception):
    """Another daemon works in the same directory: two would prepare and approve the same events."""


class RunDirectory:
    """The lock and the sockets. Call `lock`, then `open_sockets`; `settings` are those of the start."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.path = settings.run_directory
        self.sockets: list[ControlSocket] = []
        self._lock = -1
        self._problem = ""

    def lock(self) -> None:
        """Create the folder if it is missing, and lock it until this process ends.

        Raises:
            ConfigError: other users could change the folder, or that of the records.
            AlreadyRunning: another daemon works in it.
            OSError: it cannot be created.
        """
        for key, folder in (("run_directory", self.path), ("state_directory", self._settings.state_directory)):
            reason = location_problem(folder)
            if reason is not None:
                raise ConfigError(f"{key}: the folder {folder} is not safe: {reason}")
        make_folder(self.path, 0o755)
        path = os.path.join(self.path, "lock")
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if not durable_file.lock(descriptor):
            os.close(descriptor)
            raise AlreadyRunning(f"another azure-scheduled-events holds {path}")
        if self._lock >= 0:
            os.close(self._lock)
        self._lock = descriptor

    def open_sockets(self, requests: ControlRequests) -> None:
        """Create the socket for all requests and, if status_group is set, the read-only socket. Raises OSError."""
        groups = {NAME: _group_id("control_group", self._settings.control_group)}
        status_group = _group_id("status_group", self._settings.status_group)
        if status_group is None:
            remove_stale(os.path.join(self.path, STATUS_NAME))
        else:
            groups[STATUS_NAME] = status_group
        self.sockets = [ControlSocket(self.path, name, group, requests) for name, group in groups.items()]
        for each in self.sockets:
            each.listen()

    def serve(self) -> None:
        """Continue with the clients that are ready."""
        for each in self.sockets:
            each.serve()

    def restore(self) -> None:
        """Create the lock and the sockets again if they were removed; a failure is logged once, and tried again.

        Raises AlreadyRunning if another process has taken the lock.
        """
        problem = ""
        try:
            if not self._is_locked():
                self.lock()
                log.warning("the lock in %s was removed: it is created again", self.path)
            for each in self.sockets:
                if not each.is_ours():
                    each.listen()
                    log.warning("the control socket %s was removed: it is created again", each.path)
        except (OSError, ConfigError) as error:
            problem = f"the run directory {self.path} cannot be created again: {error}"
        if problem and problem != self._problem:
            log.error(problem)
        self._problem = problem

    def close(self) -> None:
        """Close the sockets and remove their files."""
        for each in self.sockets:
            each.close()

    def _is_locked(self) -> bool:
        try:
            return os.path.samestat(os.stat(os.path.join(self.path, "lock")), os.fstat(self._lock))
        except OSError:
            return False


def _group_id(key: str, name: str) -> int | None:
    if not name:
        return None
    try:
        return grp.getgrnam(name).gr_gid
    except KeyError:
        log.error("%s: there is no group %r; only root has its rights", key, name)
        return None
