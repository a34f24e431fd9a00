# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Asks a server by psql: this one through its socket, or another one by a connection string."""

from __future__ import annotations

import os
import pwd

from ready_hooks.core import commands
from ready_hooks.core.commands import Environment
from ready_hooks.core.deadline import Deadline
from ready_hooks.core.errors import HookError, OutOfTime
from ready_hooks.core.secret import read_secret

# seconds for one question, and for its connection
QUESTION = 15.0
_CONNECT = "5"
_CONNECTION_FAILED = 2


class Unreachable(HookError):
    """The server does not answer; a command that was sent before can still take effect."""


class Server:
    """A server.

    `title` names it in messages; `target` is its connection string. psql runs as `user`, a user of the operating
    system, with the variables of `environment` for libpq.
    """

    def __init__(self, title: str, target: str, user: str, environment: Environment, deadline: Deadline) -> None:
        self.title, self.target = title, target
        self._user, self._deadline = user, deadline
        self._environment = {**environment, "PGCONNECT_TIMEOUT": _CONNECT, "PGAPPNAME": "ready-hook"}

    def ask(self, sql: str, most: float | None = QUESTION) -> str:
        """Run SQL, and return its rows without white space around them.

        Raises:
            Unreachable: there is no connection, it ended, or the answer did not come in time.
            HookError: the server refused the command.
        """
        arguments = ["psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-d", self.target]
        try:
            result = commands.run(arguments, self._deadline, most, sql, self._environment, self._user)
        except OutOfTime:
            raise Unreachable(self.title, "it did not answer in time") from None
        if result.status == _CONNECTION_FAILED:
            raise Unreachable(self.title, f"no connection: {result.reason}")
        if result.status != 0:
            raise HookError(self.title, f"the command failed: {result.reason}")
        return result.output.strip()

    def holds(self, condition: str) -> bool:
        """Return whether a condition in SQL is true. Raises as `ask`."""
        return self.ask(f"SELECT coalesce(({condition}), false)") == "t"

    @property
    def is_primary(self) -> bool:
        """Whether the server takes writes. Raises as `ask`."""
        return not self.holds("pg_is_in_recovery()")

    def answers(self) -> bool:
        """Return True if the server accepts a connection and a question."""
        try:
            self.ask("SELECT 1", 5.0)
        except HookError:
            return False
        return True

    def setting(self, name: str) -> str:
        """Return the value of a setting. Raises as `ask`."""
        return self.ask(f"SHOW {name}")


def variables(user: str, password_file: str | None = None, pgpass: str | None = None) -> dict[str, str | None]:
    """Return the variables for libpq that have, or lead to, the passwords, and remove all others. Raises HookError.

    Those of the caller, such as PGHOST, lead to another server where a connection string leaves something open.
    """
    found: dict[str, str | None] = {name: None for name in os.environ if name.startswith("PG")}
    try:
        found["HOME"] = pwd.getpwnam(user).pw_dir  # of ~/.pgpass
    except KeyError:
        if os.geteuid() == 0:
            raise HookError(user, "there is no such user of the operating system", "set user") from None
    if password_file is not None:
        found["PGPASSWORD"] = read_secret(password_file)
    if pgpass is not None:
        found["PGPASSFILE"] = pgpass
    return found
