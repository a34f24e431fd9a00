# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""The server of this host: its data directory, its unit of systemd, its programs."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from ready_hooks.core import commands
from ready_hooks.core.commands import Environment
from ready_hooks.core.deadline import Deadline
from ready_hooks.core.errors import HookError
from ready_hooks.hooks.postgresql import wal
from ready_hooks.hooks.postgresql.data_directory import DataDirectory
from ready_hooks.hooks.postgresql.unit import Unit

_FOLDERS_OF_PROGRAMS = ("/usr/lib/postgresql/{}/bin", "/usr/pgsql-{}/bin", "/usr/lib64/pgsql/bin", "/usr/bin")
_SIGNAL = "standby.signal"
_AUTO_CONF = "postgresql.auto.conf"


class Location(NamedTuple):
    """Where the server is: its data directory, its unit of systemd, the port of its socket, its main file."""

    data: str
    unit: str
    port: int
    configuration: str


def locate(options: Mapping[str, Any], deadline: Deadline) -> Location:
    """Return the server that the options name, or the only cluster of a Debian. Raises HookError."""
    if options["data_directory"] is not None:
        data = options["data_directory"]
        return Location(data, options["unit"], options["port"] or 5432, os.path.join(data, "postgresql.conf"))
    # the owner of a cluster writes the files that pg_lsclusters reads
    listed = commands.must_run(["pg_lsclusters", "-h"], deadline, user=options["user"])
    rows = [line.split() for line in listed.splitlines()]
    clusters = {f"{row[0]}/{row[1]}": row for row in rows if len(row) >= 6}
    name = options["cluster"] or (next(iter(clusters)) if len(clusters) == 1 else None)
    if name is None:
        known = ", ".join(clusters) or "none"
        raise HookError("cluster", f"it is missing, and pg_lsclusters lists {known}", "set it, for example to 15/main")
    if name not in clusters:
        raise HookError(name, "pg_lsclusters does not list this cluster", "it lists " + ", ".join(clusters))
    row = clusters[name]
    unit = options["unit"] or f"postgresql@{row[0]}-{row[1]}.service"
    return Location(row[5], unit, options["port"] or int(row[2]), f"/etc/postgresql/{name}/postgresql.conf")


class Instance:
    """The server of this host, which `user` owns."""

    def __init__(self, location: Location, user: str, deadline: Deadline) -> None:
        self.location, self._user, self._deadline = location, user, deadline
        self.unit = Unit(location.unit, deadline)
        self._files = DataDirectory(location.data, user, deadline)

    @property
    def has_process(self) -> bool:
        """Whether the server's first process exists. Raises HookError."""
        process = self._files.read("postmaster.pid")
        is_number = re.fullmatch("[0-9]{1,10}", process) is not None
        return is_number and os.path.realpath(f"/proc/{process}/cwd") == os.path.realpath(self.location.data)

    def stop(self, most: float) -> None:
        """Stop the unit and wait until the server has ended. Raises HookError, OutOfTime."""
        self.unit.change("stop", most)
        if self.has_process:
            raise HookError(self.location.unit, "the server runs after the stop of its unit", "correct unit")

    def control_data(self) -> wal.ControlData:
        """Return the state of the data directory. Raises HookError."""
        arguments = [self.program("pg_controldata"), "-D", self.location.data]
        output = commands.must_run(arguments, self._deadline, environment={"LC_ALL": "C"}, user=self._user)
        try:
            return wal.control_data(output)
        except ValueError as error:
            raise HookError(self.location.data, str(error)) from None

    @property
    def is_patronis(self) -> bool:
        """Whether Patroni manages the server. Raises HookError."""
        return self._files.has("patroni.dynamic.json")

    @property
    def is_standby(self) -> bool:
        """Whether the server starts as a standby. Raises HookError."""
        return self._files.has(_SIGNAL)

    def make_standby(self) -> None:
        """Let the next start, by any actor, be that of a standby. Raises HookError."""
        self._files.create(_SIGNAL)

    def make_primary(self) -> None:
        """Undo `make_standby`. Raises HookError."""
        self._files.remove(_SIGNAL)

    def settings(self) -> str:
        """Return the settings by ALTER SYSTEM for `finish_rewind`. Raises HookError."""
        return self._files.save(_AUTO_CONF)

    def rewind(self, source: str, environment: Environment) -> None:
        """Run pg_rewind on the stopped server; `finish_rewind` has to follow, also after a kill. Raises HookError."""
        arguments = [self.program("pg_rewind"), "-D", self.location.data, "--source-server", source]
        if os.path.dirname(self.location.configuration) != self.location.data:
            arguments += ["--config-file", self.location.configuration]
        # pg_rewind removes standby.signal: a boot must not start the server as a primary before it is back
        self.unit.change("mask")
        self.make_primary()  # pg_rewind cannot recover a crashed server that has standby.signal
        commands.must_run(arguments, self._deadline, environment=environment, user=self._user)

    def finish_rewind(self, settings: str) -> None:
        """Restore the settings, which pg_rewind overwrites, and let the unit start. Raises HookError."""
        self.make_standby()
        self._files.restore(_AUTO_CONF, settings)
        self.unit.change("unmask")

    def program(self, name: str) -> str:
        """Return the path of a program of the server's version. Raises HookError."""
        version = self._files.read("PG_VERSION")
        if re.fullmatch("[0-9]{1,3}", version) is None:
            problem = f"it is not a data directory: PG_VERSION is {version!r}, not a number"
            raise HookError(self.location.data, problem, "correct data_directory")
        for folder in _FOLDERS_OF_PROGRAMS:
            path = os.path.join(folder.format(version), name)
            if os.access(path, os.X_OK):
                return path
        path_of_shell = commands.found(name)
        if path_of_shell is None:
            raise HookError(name, f"it is not installed for PostgreSQL {version}", "install it")
        return path_of_shell
