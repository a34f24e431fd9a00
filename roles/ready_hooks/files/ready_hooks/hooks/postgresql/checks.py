# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Finds before an event what would let the hook fail."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from typing import Any

from ready_hooks.core.errors import HookError
from ready_hooks.core.hook import ERROR, INFO, WARNING, Finding
from ready_hooks.core.secret import secret_problem
from ready_hooks.hooks.postgresql import switchover, synchronous
from ready_hooks.hooks.postgresql.decision import State
from ready_hooks.hooks.postgresql.pair import Pair
from ready_hooks.hooks.postgresql.server import Server

_SECONDS = 60


def findings(pair: Pair) -> Iterator[Finding]:
    """Yield the findings for this server."""
    own = pair.instance
    if not own.unit.runs:
        remedy = f"correct unit ({own.location.unit})" if own.has_process else "start it, or correct cluster"
        yield Finding(ERROR, f"{own.location.unit}: systemd does not run this unit; {remedy}")
        return
    if pair.run.options["stop"] or pair.run.options["replica"] is not None:
        yield from own.unit.findings()
    state = pair.own_state()
    yield Finding(INFO, f"{own.location.unit}: a {state.value}, port {own.location.port}")
    if not pair.own.holds("current_setting('is_superuser')::boolean"):
        yield Finding(ERROR, f"{pair.own.title}: the role of user {pair.run.options['user']} is not a superuser")
    if pair.run.options["pgbouncer"] is not None:
        yield from _pooler(pair.other(pair.run.options["pgbouncer"]))
    if state is State.PRIMARY and pair.run.options["replica"] is not None:
        yield from _switchover(pair)
    elif state is State.STANDBY:
        yield from _standby(pair)
    else:
        yield Finding(INFO, f"{pair.own.title}: no replica is named; prepare writes a checkpoint only")


def files(options: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield the findings for the files with passwords."""
    if options["password_file"] is not None and (problem := secret_problem(options["password_file"])):
        yield Finding(ERROR, f"{options['password_file']}: the secret is not used: {problem}")
    if options["pgpass"] is not None:
        try:
            mode = stat.S_IMODE(os.stat(options["pgpass"]).st_mode)
        except OSError as error:
            yield Finding(ERROR, f"{options['pgpass']}: it cannot be read: {error.strerror}")
        else:
            if mode & 0o077:
                yield Finding(
                    ERROR, f"{options['pgpass']}: psql ignores it, since its mode is {mode:04o}; chmod it to 0600"
                )


def _switchover(pair: Pair) -> Iterator[Finding]:
    options = pair.run.options
    other = pair.other(options["replica"])
    yield Finding(
        INFO, f"a switchover needs a timeout of the hook of at least {_SECONDS} s, and the time of a checkpoint"
    )
    switchover.ensure_ready(pair, other)
    yield Finding(INFO, f"{other.title}: the replica can take over")
    names = other.setting(synchronous.SETTING)
    if names and not options["suspend_synchronous"]:
        problem = f"{synchronous.SETTING} is {names!r}: after the switchover, commits wait for a standby"
        yield Finding(WARNING, f"{other.title}: {problem}; set suspend_synchronous, or have another standby")
    for program in ("pg_controldata", "pg_rewind"):
        pair.instance.program(program)
    if not pair.instance.control_data().can_rewind:
        problem = "wal_log_hints and data checksums are off; pg_rewind cannot repair a diverged server"
        yield Finding(WARNING, f"{pair.own.title}: {problem}")
    if not pair.own.setting("primary_slot_name") and other.setting("wal_keep_size") == "0":
        problem = "wal_keep_size is 0, and this server has no primary_slot_name; it may miss records when it is back"
        yield Finding(WARNING, f"{other.title}: {problem}")


def _standby(pair: Pair) -> Iterator[Finding]:
    options = pair.run.options
    target = options["primary"] or options["replica"]
    if target is None:
        return
    other = pair.other(target)
    if not other.is_primary:
        yield Finding(WARNING, f"{other.title}: it is not a primary; correct the option primary")
    elif not pair.wait_until_streaming(other, 0.0):
        yield Finding(WARNING, f"{pair.own.title}: it does not stream from {other.title}, or lags too far")
    elif synchronous.would_block(other) and not options["suspend_synchronous"]:
        problem = "its commits wait for this standby while this host is down"
        yield Finding(WARNING, f"{other.title}: {problem}; set suspend_synchronous, or have another standby")


def _pooler(pooler: Server) -> Iterator[Finding]:
    try:
        pooler.ask("SHOW DATABASES;")
        yield Finding(INFO, f"{pooler.title}: PgBouncer answers")
    except HookError as error:
        yield Finding(ERROR, f"{error}; it needs the database pgbouncer, and a user of admin_users")
