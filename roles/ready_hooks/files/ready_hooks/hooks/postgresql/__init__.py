# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Switches over from a primary of PostgreSQL to its replica, and lets the old primary rejoin."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from ready_hooks.core import arguments
from ready_hooks.core.arguments import Option
from ready_hooks.core.errors import HookError, UsageError
from ready_hooks.core.hook import Finding, RecordingHook, Run
from ready_hooks.hooks.postgresql import checks, wal
from ready_hooks.hooks.postgresql.conninfo import conninfo
from ready_hooks.hooks.postgresql.decision import Action, Phase, State, decide
from ready_hooks.hooks.postgresql.pair import Pair
from ready_hooks.hooks.postgresql.patroni import Patroni
from ready_hooks.hooks.postgresql.pause import Pause
from ready_hooks.hooks.postgresql.rejoin import Rejoin
from ready_hooks.hooks.postgresql.switchover import Switchover

_FIND = "the only cluster that pg_lsclusters lists"


class Postgresql(RecordingHook):
    """Switch over to a replica, or write a checkpoint.

    The record has the phase of a switchover and the other server, and whether the server was
    stopped and synchronous replication suspended; during a rewind, also the settings that
    pg_rewind overwrites.
    """

    name = "postgresql"
    summary = "Switches over from a primary of PostgreSQL to its replica, and lets the old primary rejoin."
    options = (
        Option("replica", conninfo, "connection string of the server to switch to while this one is the primary"),
        Option("primary", conninfo, "connection string of the primary while this one is a replica; default: replica"),
        Option("primary_conninfo", conninfo, "setting by which this server streams from the new primary"),
        Option("most_lag", wal.size, "bytes by which the replica may lag", 16 * 2**20),
        Option("suspend_synchronous", arguments.boolean, "let the other server commit without this one", False),
        Option("stop", arguments.boolean, "stop this server where no switchover takes place", False),
        Option("pgbouncer", conninfo, "console of a PgBouncer whose clients wait where no switchover takes place"),
        Option("rewind", arguments.boolean, "run pg_rewind if this server has diverged", True),
        Option("patroni", arguments.path, "configuration of Patroni, where Patroni manages this server"),
        Option("member", arguments.text, "name of this member of Patroni; default: that of the configuration"),
        Option(
            "candidate", arguments.text, "the only member of Patroni to switch to; default: the one with the least lag"
        ),
        Option("switch_back", arguments.boolean, "with Patroni, make this member the leader again", False),
        Option("password_file", arguments.path, "file with the password for replica and primary"),
        Option("pgpass", arguments.path, "file with passwords in the format of libpq"),
        Option("user", arguments.text, "user of the operating system that owns the server", "postgres"),
        Option("database", arguments.text, "database for questions to this server", "postgres"),
        Option("port", arguments.port, "port of this server's socket; default: that of the cluster, or 5432"),
        Option("cluster", arguments.text, f"cluster of Debian, such as 15/main; default: {_FIND}"),
        Option("data_directory", arguments.path, "data directory of a server that is not a cluster of Debian"),
        Option("unit", arguments.text, "unit of systemd; default: that of the cluster"),
    )

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        values = run.options
        if values["patroni"] is None:
            for name in ("member", "candidate", "switch_back"):
                if values[name]:
                    raise UsageError(name, "it is for servers that Patroni manages", "set patroni, or remove it")
            if values["data_directory"] is not None and values["unit"] is None:
                raise UsageError("unit", "it is missing", "data_directory needs the unit that runs the server")
        self._patroni = None if values["patroni"] is None else Patroni(run)

    def check(self) -> Iterator[Finding]:
        os.chdir("/")
        yield from checks.files(self.run.options)
        if self._patroni is not None:
            yield from self._patroni.check()
        else:
            yield from checks.findings(Pair(self.run))

    def prepare(self) -> None:
        os.chdir("/")  # the user of psql may not enter the folder of the caller
        if self._patroni is not None:
            self._patroni.prepare()
            return
        pair = Pair(self.run)
        data: dict[str, Any] = self.run.record.load() or {}
        if "phase" in data and not self._continue(pair, data):
            return
        own = pair.own_state()
        if own is State.STOPPED:
            self.run.say(f"{pair.own.title} does not run")
        elif own is State.PRIMARY and self.run.options["replica"] is not None:
            pair.choose(self.run.options["replica"], data)
            Switchover(pair, data).begin()
        else:
            Pause(pair, data).prepare(own)

    def undo(self, record: dict[str, Any]) -> None:
        os.chdir("/")
        if self._patroni is not None:
            self._patroni.recover(record)
        elif "phase" in record:
            Rejoin(Pair(self.run), record).settle()
        else:
            Pause(Pair(self.run), record).recover()

    def _continue(self, pair: Pair, data: dict[str, Any]) -> bool:
        """Continue an earlier switchover; return True if this server is the primary, and a new one has to begin."""
        switchover, phase = Switchover(pair, data), Phase(data["phase"])
        other = pair.state_of(pair.other(data["other"]))
        own = pair.own_state()
        action = decide(phase, own, other)
        if action is Action.KEEP:
            return True
        if action is Action.REJOIN:
            self.run.say(f"{data['other']} is the primary already")
        elif action is Action.FINISH_PROMOTION and switchover.has_everything(data["checkpoint"]):
            switchover.promote()
        elif action is Action.START_AS_PRIMARY and own is State.STOPPED:
            switchover.resume()
        else:
            remedy = "run recover first"
            raise HookError(data["other"], f"an earlier preparation has not ended: {action.value}", remedy)
        return False


HOOK = Postgresql
