# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Lets a primary commit without a synchronous standby while that standby is away."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ready_hooks.core.deadline import Deadline
from ready_hooks.core.errors import HookError
from ready_hooks.hooks.postgresql.conninfo import quoted
from ready_hooks.hooks.postgresql.server import Server

SETTING = "synchronous_standby_names"


def required(names: str) -> int:
    """Return how many standbys a commit waits for with this value of synchronous_standby_names."""
    match = re.match(r"\s*(?:FIRST\s+|ANY\s+)?(\d+)\s*\(", names, re.IGNORECASE)
    return int(match[1]) if match else int(bool(names.strip()))


def would_block(server: Server) -> bool:
    """Return True if commits of this primary wait when one of its synchronous standbys stops. Raises HookError."""
    names = server.setting(SETTING)
    states = "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming' AND sync_state <> 'async'"
    return bool(names) and int(server.ask(states)) - 1 < required(names)


def present(server: Server) -> dict[str, Any]:
    """Return what `resume` restores: the value, and whether ALTER SYSTEM has set it. Raises HookError."""
    source = f"SELECT coalesce(sourcefile, '') LIKE '%auto.conf' FROM pg_settings WHERE name = '{SETTING}'"
    return {"names": server.setting(SETTING), "by_alter_system": server.ask(source) == "t"}


def suspend(server: Server, deadline: Deadline) -> None:
    """Let the server commit by itself. Raises HookError."""
    server.ask(f"ALTER SYSTEM SET {SETTING} = '';\nSELECT pg_reload_conf();")
    if not deadline.wait_until(lambda: server.setting(SETTING) == "", 15.0, 0.05):
        raise HookError(server.title, f"it did not take the new value of {SETTING}", "look at its log")


def resume(server: Server, before: Mapping[str, Any]) -> bool:
    """Undo `suspend`; return False if the value has changed since. Raises HookError."""
    if server.setting(SETTING) != "":
        return False
    change = f"SET {SETTING} = {quoted(before['names'])}" if before["by_alter_system"] else f"RESET {SETTING}"
    server.ask(f"ALTER SYSTEM {change};\nSELECT pg_reload_conf();")
    return True
