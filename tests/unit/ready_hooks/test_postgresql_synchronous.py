# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The ready hook postgresql with a script as psql: a primary db2 and a primary db3 with synchronous standbys."""

from __future__ import annotations

from typing import Any

import pytest

from ready_hooks.hooks.postgresql.pair import Pair
from support.ready_hooks.hook_host import HookHost

# the setting of each primary is in a file with the name of the connection string
PSQL = """for target do :; done
case $(cat) in
    *ALTER*RESET*) echo '*' >"$FOLDER/$target" ;;
    *ALTER*) : >"$FOLDER/$target" ;;
    *SHOW*) cat "$FOLDER/$target" ;;
    *sourcefile*) echo f ;;
esac"""
SUSPENDED = {"names": "*", "by_alter_system": False}
FIRST, SECOND = "host=db2", "host=db3"


@pytest.fixture
def pair(hook_host: HookHost) -> Pair:
    hook_host.program("psql", PSQL)
    for target in (FIRST, SECOND):
        (hook_host.folder / target).write_text("*\n", encoding="utf-8")
    return Pair(hook_host.server())


def settings(pair: Pair) -> list[str]:
    return [pair.other(target).setting("synchronous_standby_names") for target in (FIRST, SECOND)]


def test_suspension_that_was_recorded_and_not_made_is_made_by_the_next_prepare(pair: Pair) -> None:
    """A kill between the record and the change leaves this record."""
    data: dict[str, Any] = {"other": FIRST, "synchronous": SUSPENDED}
    pair.suspend_synchronous(pair.choose(FIRST, data), data)
    assert settings(pair) == ["", "*"]
    pair.suspend_synchronous(pair.choose(FIRST, data), data)
    assert pair.run.record.load() == {"other": FIRST, "synchronous": SUSPENDED}
    pair.resume_synchronous(pair.other(FIRST), data)
    assert settings(pair) == ["*", "*"]


def test_suspension_of_another_primary_undoes_that_of_the_first_one(pair: Pair) -> None:
    data: dict[str, Any] = {}
    pair.suspend_synchronous(pair.choose(FIRST, data), data)
    pair.suspend_synchronous(pair.choose(SECOND, data), data)
    assert settings(pair) == ["*", ""]
    assert pair.run.record.load() == {"other": SECOND, "synchronous": SUSPENDED}
