# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable
from typing import Any

import pytest

from ready_hooks.core.arguments import from_mapping
from ready_hooks.core.errors import UsageError
from ready_hooks.hooks.postgresql import HOOK, members, replica, synchronous, wal
from ready_hooks.hooks.postgresql.conninfo import has_password, quoted, replication
from ready_hooks.hooks.postgresql.decision import Action, Phase, State, decide
from ready_hooks.hooks.postgresql.pair import Pair
from support.ready_hooks.hook_host import HookHost

CONTROL = """\
pg_control version number:            1300
Database system identifier:           7711118510800611539
Database cluster state:               {state}
Latest checkpoint location:           {checkpoint}
Latest checkpoint's TimeLineID:       1
Minimum recovery ending location:     {received}
wal_log_hints setting:                {hints}
Data page checksum version:           {checksums}
"""
HISTORY = "1\t0/3000100\tno recovery target specified\n\n2\t0/5000000\tno recovery target specified\n"


def control(
    state: str = wal.CLEAN, checkpoint: str = "0/3000028", received: str = "0/0", hints: str = "off", checksums: int = 0
) -> wal.ControlData:
    return wal.control_data(
        CONTROL.format(state=state, checkpoint=checkpoint, received=received, hints=hints, checksums=checksums)
    )


def test_lsn_is_a_number() -> None:
    assert wal.lsn("16/B374D848") == (0x16 << 32) + 0xB374D848


@pytest.mark.parametrize(("text", "expected"), [(512, 512), ("16MiB", 2**24), ("64kB", 2**16), ("1 GB", 2**30)])
def test_size_is_in_bytes(text: object, expected: int) -> None:
    assert wal.size(text) == expected


@pytest.mark.parametrize(("hints", "checksums", "expected"), [("off", 0, False), ("on", 0, True), ("off", 1, True)])
def test_rewind_needs_hints_or_checksums(hints: str, checksums: int, expected: bool) -> None:
    assert control(hints=hints, checksums=checksums).can_rewind is expected


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        (control(checkpoint="0/3000028"), False),
        (control(checkpoint="0/3000100"), True),
        (control(checkpoint="0/3000200"), True),
        (control("in production"), True),
        (control("shut down in recovery", received="0/3000100"), False),
        (control("shut down in recovery", received="0/3000101"), True),
    ],
)
def test_server_has_diverged_if_it_wrote_after_the_end_of_its_timeline(own: wal.ControlData, expected: bool) -> None:
    assert wal.has_diverged(own, 3, HISTORY) is expected


def test_server_on_a_timeline_that_the_primary_never_had_has_diverged() -> None:
    assert wal.has_diverged(control()._replace(timeline=4), 3, HISTORY)
    assert not wal.has_diverged(control(), 1, "")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("host=db2 user=postgres", False),
        ("host=db2 passfile=/etc/pgpass", False),
        ("host=db2 password=secret", True),
        ("password = secret", True),
        ("host=db2 sslkey=/etc/key sslpassword=secret", True),
        ("postgresql://postgres@db2/postgres?sslpassword=secret", True),
        ("postgresql://postgres:secret@db2/postgres", True),
        ("postgresql://postgres@db2/postgres?password=secret", True),
        ("postgresql://postgres@db2:5432/postgres", False),
    ],
)
def test_has_password(text: str, expected: bool) -> None:
    assert has_password(text) is expected


@pytest.mark.parametrize(
    "options",
    [
        {"replica": "db2"},
        {"replica": "host=db2 password=secret"},
        {"replica": "host=db2 sslpassword=secret"},
        {"pgbouncer": "postgresql://db2?sslmode=require&sslpassword=secret"},
        {"primary_conninfo": "postgresql://replicator:secret@db2"},
        {"port": 0},
        {"most_lag": "16 apples"},
        {"data_directory": "main"},
        {"replicas": "host=db2"},
    ],
)
def test_option_that_is_wrong_is_an_error(options: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        from_mapping(HOOK.options, options)


def test_replication_extends_both_forms() -> None:
    assert replication("host=db2") == "host=db2 dbname=replication replication=true"
    assert replication("postgresql://db2") == "postgresql://db2?dbname=replication&replication=true"
    assert replication("postgresql://db2?user=a") == "postgresql://db2?user=a&dbname=replication&replication=true"


def test_quoted_text_is_a_literal() -> None:
    assert (quoted("it's"), quoted("a\\b'")) == ("'it''s'", "E'a\\\\b'''")


GOOD = "t|77|f|0|t|streaming|0/3000000"


@pytest.mark.parametrize(
    ("answer", "part"),
    [
        (GOOD, None),
        ("f|77|f|0|t|without a receiver|0/0", "primary"),
        ("t|78|f|0|t|streaming|0/3000000", "another server"),
        ("t|77|t|0|t|streaming|0/3000000", "paused"),
        ("t|77|f|5min|t|streaming|0/3000000", "on purpose"),
        ("t|77|f|0|f|streaming|0/3000000", "pg_promote"),
        ("t|77|f|0|t|waiting|0/3000000", "stream"),
        ("t|77|f|0|t|streaming|0/2FFFFFF", "lags too far"),
    ],
)
def test_refusal_names_why_a_replica_must_not_take_over(answer: str, part: str | None) -> None:
    found = replica.refusal(replica.replica_state(answer), "77", 0x3000000 + 16, 16)
    assert found is None if part is None else found is not None and part in found[0]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("", 0),
        ("*", 1),
        ("a, b", 1),
        ("FIRST 2 (a, b, c)", 2),
        ("ANY 1 (*)", 1),
        ("any 3(a,b,c,d)", 3),
        ("2 (a, b)", 2),
    ],
)
def test_required_counts_the_standbys_that_a_commit_waits_for(names: str, expected: int) -> None:
    assert synchronous.required(names) == expected


@pytest.mark.parametrize(
    ("read", "values", "message"),
    [
        (wal.lsn, ["", "16", "16/", "16/B374D848A", "-1/0", "x/y"], "position"),
        (wal.size, [True, "", "-1", "16 apples", 1.5, None], "bytes"),
        (wal.control_data, ["pg_control version number: 1300\n"], "Database cluster state"),
        (replica.replica_state, ["", "t|77", GOOD + "|x", "t|77|f|0|t|streaming|x"], "expected"),
        (members.members, ["", "{}", "[1]", '[{"Role": "Leader"}]'], r"."),
    ],
)
def test_value_that_is_not_usable_is_an_error(
    read: Callable[[Any], object], values: list[object], message: str
) -> None:
    for value in values:
        with pytest.raises(ValueError, match=message):
            read(value)


OWN = (State.PRIMARY, State.STANDBY, State.STOPPED)
OTHER = (State.PRIMARY, State.STANDBY, State.UNREACHABLE)
TAKES_WRITES = (Action.KEEP, Action.START_AS_PRIMARY)


@pytest.mark.parametrize(("phase", "own", "other"), list(itertools.product(Phase, OWN, OTHER)))
def test_decide_never_leads_to_two_primaries(phase: Phase, own: State, other: State) -> None:
    action = decide(phase, own, other)
    may_be_promoted = other is State.PRIMARY or (phase is not Phase.STOPPING and other is State.UNREACHABLE)
    if may_be_promoted:
        assert action not in TAKES_WRITES
    if own is State.PRIMARY:
        assert action not in (Action.FINISH_PROMOTION, Action.REJOIN)
    if action is Action.START_AS_PRIMARY:
        assert phase is Phase.STOPPING


def test_decide_completes_a_promotion_that_may_have_been_sent() -> None:
    assert decide(Phase.PROMOTING, State.STOPPED, State.STANDBY) is Action.FINISH_PROMOTION
    assert decide(Phase.STOPPING, State.STOPPED, State.STANDBY) is Action.START_AS_PRIMARY
    assert decide(Phase.PROMOTED, State.STOPPED, State.PRIMARY) is Action.REJOIN


def row(name: str, role: str = "Replica", state: str = "running", lag: object = 0, **more: object) -> dict[str, object]:
    return {"Cluster": "lab", "Member": name, "Role": role, "State": state, "TL": 1, "Lag in MB": lag, **more}


LEADER = row("db1", "Leader", lag="")


def found(*rows: dict[str, object]) -> tuple[members.Member, ...]:
    return members.members(json.dumps([LEADER, *rows]))


def test_members_of_patroni() -> None:
    leader, replica, unknown = found(row("db2", lag=1), row("db3", lag="unknown"))
    assert (leader.is_leader, leader.lag, replica.is_leader, replica.lag) == (True, 0, False, 2**20)
    assert unknown.lag == math.inf


@pytest.mark.parametrize(
    ("rows", "wanted", "expected"),
    [
        ([row("db2", lag=3), row("db3", lag=1)], None, "db3"),
        ([row("db2", lag=3), row("db3", lag=1)], "db2", "db2"),
        ([row("db2", state="streaming")], None, "db2"),
        ([row("db2", "Sync Standby", lag=3), row("db3")], None, "db2"),
        ([row("db2", lag=17)], None, None),
        ([row("db2", lag="unknown")], None, None),
        ([row("db2", state="stopped")], None, None),
        ([row("db2", Tags={"nofailover": True})], None, None),
        ([row("db2", "Sync Standby"), row("db3")], "db3", None),
        ([], None, None),
    ],
)
def test_candidate_is_the_best_member_that_can_take_over(
    rows: list[dict[str, object]], wanted: str | None, expected: str | None
) -> None:
    name, reasons = members.candidate(found(*rows), "db1", wanted, 16 * 2**20)
    assert (name, bool(reasons)) == (expected, expected is None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("scope: a\nname: db1\n", "db1"), ('name: "db 1"  # own\n', "db 1"), ("  name: x\n", None), ("", None)],
)
def test_own_name_of_a_configuration(text: str, expected: str | None) -> None:
    assert members.own_name(text) == expected


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
