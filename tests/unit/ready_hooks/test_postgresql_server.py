# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The questions of the ready hook postgresql, with a script as psql."""

from __future__ import annotations

import pytest

from ready_hooks.hooks.postgresql.pair import Pair
from support.ready_hooks.hook_host import HookHost


def test_variables_of_the_caller_lead_to_no_other_server(hook_host: HookHost, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PGHOST", "PGPORT", "PGSERVICE", "PGCONNECT_TIMEOUT"):
        monkeypatch.setenv(name, "7")
    hook_host.program("psql", "env | grep ^PG | sort")
    pair = Pair(hook_host.server(pgpass="/etc/pgpass"))
    assert pair.own.ask("SELECT 1").split() == ["PGAPPNAME=ready-hook", "PGCONNECT_TIMEOUT=5"]
    assert pair.other("host=db2").ask("SELECT 1").split() == [
        "PGAPPNAME=ready-hook",
        "PGCONNECT_TIMEOUT=5",
        "PGPASSFILE=/etc/pgpass",
    ]
