# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The ready hook postgresql with a primary and a streaming replica on two hosts."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from support.ready_hooks.postgresql_pair import PostgresqlPair
from support.ready_hooks.workload_host import WorkloadHost

SECONDS = 60.0


@pytest.fixture(scope="module")
def built(workload_host: Callable[[str], WorkloadHost]) -> PostgresqlPair:
    return PostgresqlPair(workload_host("db1"), workload_host("db2"))


@pytest.fixture
def pair(built: PostgresqlPair) -> PostgresqlPair:
    built.reset()
    return built


def run(pair: PostgresqlPair, host: WorkloadHost, verb: str, **more: object) -> str:
    done = host.hook("postgresql", verb, {**pair.options(host), **more}, seconds=SECONDS)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.short
def test_switchover_and_rejoin_leave_one_primary_and_one_standby(pair: PostgresqlPair) -> None:
    run(pair, pair.first, "prepare")
    assert pair.roles() == ["", "primary"]
    pair.ask(pair.second, "INSERT INTO acknowledged VALUES (1)")
    run(pair, pair.first, "recover")
    assert pair.roles() == ["standby", "primary"]
    pair.wait_for(pair.first, "SELECT count(*) FROM acknowledged", "1")
    assert pair.first.record("postgresql") is None
