# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The ready hook postgresql with a primary and a streaming replica on two hosts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.ready_hooks.postgresql_pair import HBA, UNIT, Load, PostgresqlPair
from support.ready_hooks.printed_play import printed_play
from support.ready_hooks.workload_host import Completed, WorkloadHost
from support.recipes.printed import find
from support.wait import wait_until

pytestmark = pytest.mark.all

SECONDS = 60.0
SYNCHRONOUS = "synchronous_standby_names = '*'\n"


@pytest.fixture(scope="module")
def built(workload_host: Callable[[str], WorkloadHost]) -> PostgresqlPair:
    return PostgresqlPair(workload_host("db1"), workload_host("db2"))


@pytest.fixture
def unchanged(built: PostgresqlPair) -> PostgresqlPair:
    """The pair as after its reset, for a test that changes nothing."""
    if not built.is_fresh:
        built.reset()
    built.is_fresh = True
    return built


@pytest.fixture
def pair(unchanged: PostgresqlPair) -> PostgresqlPair:
    unchanged.is_fresh = False
    return unchanged


@pytest.fixture
def load(workload_host: Callable[[str], WorkloadHost], pair: PostgresqlPair) -> Load:
    return Load(workload_host("client"), (pair.first, pair.second))


def attempt(pair: PostgresqlPair, host: WorkloadHost, verb: str, seconds: float = SECONDS, **more: Any) -> Completed:
    return host.hook("postgresql", verb, {**pair.options(host), **more}, seconds=seconds)


def run(pair: PostgresqlPair, host: WorkloadHost, verb: str, **more: Any) -> str:
    done = attempt(pair, host, verb, **more)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def phase(host: WorkloadHost) -> object:
    return (host.record("postgresql") or {}).get("phase")


def test_switchover_and_rejoin_leave_one_primary_and_one_standby(pair: PostgresqlPair) -> None:
    run(pair, pair.first, "prepare")
    record = pair.first.record("postgresql")
    run(pair, pair.first, "prepare")
    assert (pair.first.record("postgresql"), pair.roles()) == (record, ["", "primary"])
    pair.ask(pair.second, "INSERT INTO acknowledged VALUES (1)")
    for _again in range(2):
        run(pair, pair.first, "recover")
        assert (pair.first.record("postgresql"), pair.roles()) == (None, ["standby", "primary"])
    pair.wait_for(pair.first, "SELECT count(*) FROM acknowledged", "1")


@pytest.mark.parametrize("settings", ["", SYNCHRONOUS], ids=["asynchronous", "synchronous"])
def test_events_on_both_hosts_under_load_lose_no_acknowledged_write(
    pair: PostgresqlPair, load: Load, settings: str
) -> None:
    pair.reset(settings)
    more: dict[str, Any] = {"suspend_synchronous": True}
    with load:
        for host in (pair.first, pair.second):
            load.wait_for_more()
            run(pair, host, "prepare", **more)
            load.wait_for_more()
            host.host.reboot()
            load.wait_for_more()
            assert pair.roles().count("primary") == 1
            run(pair, host, "recover", **more)
        load.wait_for_more()
    assert pair.roles() == ["primary", "standby"]
    assert load.lost(pair.first) == set()
    assert [pair.ask(host, "SHOW synchronous_standby_names") for host in (pair.first, pair.second)] == (
        ["*", "*"] if settings else ["", ""]
    )


def test_reboot_of_a_synchronous_standby_does_not_block_the_primary(pair: PostgresqlPair, load: Load) -> None:
    pair.reset(SYNCHRONOUS)
    more: dict[str, Any] = {"suspend_synchronous": True, "stop": True}
    with load:
        run(pair, pair.second, "prepare", **more)
        assert pair.roles() == ["primary", ""]
        load.wait_for_more()
        pair.second.host.reboot()
        run(pair, pair.second, "recover", **more)
        load.wait_for_more()
    assert pair.ask(pair.first, "SHOW synchronous_standby_names") == "*"
    assert load.lost(pair.first) == set()
    assert load.lost(pair.second) == set()


def test_prepare_refuses_a_replica_that_lags_too_far(pair: PostgresqlPair) -> None:
    signal_process(pair.second, "startup", "STOP")
    pair.ask(pair.first, "INSERT INTO acknowledged SELECT generate_series(1, 10000)")
    done = attempt(pair, pair.first, "prepare", most_lag="64kB")
    signal_process(pair.second, "startup", "CONT")
    assert (done.returncode, "lags too far" in done.stderr) == (1, True)
    assert (pair.roles(), phase(pair.first)) == (["primary", "standby"], None)


def test_replica_that_does_not_get_the_last_records_is_not_promoted(pair: PostgresqlPair) -> None:
    signal_process(pair.second, "startup", "STOP")
    done = attempt(pair, pair.first, "prepare", seconds=18.0)
    signal_process(pair.second, "startup", "CONT")
    assert (done.returncode, phase(pair.first)) == (1, None), done.stdout + done.stderr
    pair.wait_for_streaming(pair.first)
    assert pair.roles() == ["primary", "standby"]


def test_prepare_with_too_little_time_changes_nothing(unchanged: PostgresqlPair) -> None:
    done = attempt(unchanged, unchanged.first, "prepare", seconds=5.0)
    assert (done.returncode, unchanged.roles(), phase(unchanged.first)) == (1, ["primary", "standby"], None)


def test_promotion_that_takes_longer_than_statements_may_leaves_one_primary(pair: PostgresqlPair) -> None:
    pair.reset("recovery_end_command = 'sleep 3'\n")
    replica = f"{pair.options(pair.first)['replica']} options='-c statement_timeout=1s'"
    run(pair, pair.first, "prepare", replica=replica)
    assert pair.roles() == ["", "primary"]
    run(pair, pair.first, "recover", replica=replica)
    assert pair.roles() == ["standby", "primary"]


# where the hook is killed, whether the host is rebooted then, and the primary after recover
BEFORE, AFTER = "before", "after"
POINTS = {
    "checkpoint": (BEFORE, "CHECKPOINT", False, 0),
    "verify": (BEFORE, "coalesce(pg_last_wal_replay_lsn(), '0/0')", True, 0),
    "promote": (BEFORE, "pg_promote(false", False, 1),
    "promoted": (AFTER, "pg_promote(false", True, 1),
}


@pytest.mark.parametrize(("when", "sql", "reboots", "primary"), POINTS.values(), ids=POINTS)
def test_hook_killed_in_the_middle_leaves_one_primary_after_recover(
    pair: PostgresqlPair, load: Load, when: str, sql: str, reboots: bool, primary: int
) -> None:
    with load:
        load.wait_for_more()
        kill_at(pair, when, sql)
        assert pair.roles().count("primary") <= 1
        if reboots:
            pair.first.host.reboot()
            assert pair.roles().count("primary") <= 1
        run(pair, pair.first, "recover")
        load.wait_for_more()
    hosts = (pair.first, pair.second)
    assert pair.roles()[primary] == "primary"
    pair.wait_for_streaming(hosts[primary])
    assert load.lost(hosts[primary]) == set()
    assert pair.first.record("postgresql") is None


def test_recover_does_not_start_a_primary_while_the_other_is_unreachable(pair: PostgresqlPair) -> None:
    kill_at(pair, AFTER, "pg_promote(false")
    pair.wait_for(pair.second, "SELECT pg_is_in_recovery()", "f")
    pair.second.run("systemctl", "stop", UNIT)
    done = attempt(pair, pair.first, "recover", seconds=20.0)
    assert (done.returncode, phase(pair.first)) == (1, "promoting")
    assert "primary" not in pair.roles()
    pair.second.run("systemctl", "start", UNIT)
    pair.wait_for(pair.second, "SELECT pg_is_in_recovery()", "f")
    run(pair, pair.first, "recover")
    assert pair.roles() == ["standby", "primary"]


@pytest.mark.parametrize("rewind", [True, False])
def test_recover_rewinds_a_server_that_has_diverged(pair: PostgresqlPair, rewind: bool) -> None:
    kill_at(pair, BEFORE, "coalesce(pg_last_wal_replay_lsn(), '0/0')")
    pair.first.run("systemctl", "start", UNIT)
    pair.wait_for(pair.first, "SELECT pg_is_in_recovery()", "f")
    pair.wait_for_streaming(pair.first)
    pair.ask(pair.second, "SELECT pg_promote()")  # a mistake of an operator: two primaries
    pair.ask(pair.first, "INSERT INTO acknowledged VALUES (1)")
    pair.ask(pair.second, "INSERT INTO acknowledged VALUES (2)")
    assert attempt(pair, pair.first, "recover").returncode == 1
    pair.first.run("systemctl", "stop", UNIT)
    done = attempt(pair, pair.first, "recover", rewind=rewind)
    assert done.returncode == (0 if rewind else 1), done.stdout + done.stderr
    if rewind:
        pair.wait_for(pair.first, "SELECT number FROM acknowledged", "2")
        pair.first.host.reboot()
        assert pair.roles() == ["standby", "primary"]


def test_prepare_after_a_kill_completes_the_switchover(pair: PostgresqlPair) -> None:
    kill_at(pair, BEFORE, "pg_promote(false")
    run(pair, pair.first, "prepare")
    assert pair.roles() == ["", "primary"]


def test_primary_without_a_replica_writes_a_checkpoint_and_stops(pair: PostgresqlPair) -> None:
    checkpoint = "SELECT checkpoint_lsn FROM pg_control_checkpoint()"
    before = pair.ask(pair.first, checkpoint)
    assert pair.first.hook("postgresql", "prepare", {}).returncode == 0
    assert pair.ask(pair.first, checkpoint) != before
    assert pair.first.hook("postgresql", "prepare", {"stop": True}).returncode == 0
    assert pair.roles() == ["", "standby"]
    assert pair.first.hook("postgresql", "recover", {"stop": True}).returncode == 0
    assert pair.roles() == ["primary", "standby"]


def test_password_of_a_secret_file_reaches_the_replica(pair: PostgresqlPair) -> None:
    pair.ask(pair.first, "CREATE ROLE switch SUPERUSER LOGIN PASSWORD 'pass word'")
    line = "host all switch samenet scram-sha-256"
    pair.second.shell(f"sed -i '1i {line}' {HBA}; systemctl reload {UNIT}")
    pair.first.write("/etc/secret", "pass word\n", 0o644)
    replica = f"host={pair.second.host.address} user=switch dbname=postgres"
    more: dict[str, Any] = {"replica": replica, "password_file": "/etc/secret"}
    assert attempt(pair, pair.first, "check", **more).returncode == 1
    pair.first.write("/etc/secret", "pass word\n", 0o600)
    run(pair, pair.first, "check", **more)
    run(pair, pair.first, "prepare", **more)
    run(pair, pair.first, "recover", **more)
    assert pair.roles() == ["standby", "primary"]


PGBOUNCER = """
[databases]
postgres = host=/var/run/postgresql user=postgres
[pgbouncer]
unix_socket_dir = /var/run/postgresql
listen_port = 6432
auth_type = any
pool_mode = transaction
"""
CONSOLE = "host=/var/run/postgresql port=6432 dbname=pgbouncer user=pgbouncer"
QUERY = ("psql", "-XAtq", "-d", "host=/var/run/postgresql port=6432 user=postgres dbname=postgres", "-c", "SELECT 42")


@pytest.fixture
def pooled(pair: PostgresqlPair) -> Iterator[PostgresqlPair]:
    """The pair, with a PgBouncer on the host of the replica."""
    pair.second.write("/etc/pgbouncer/pgbouncer.ini", PGBOUNCER)
    pair.second.run("systemctl", "restart", "pgbouncer")
    yield pair
    pair.second.run("systemctl", "stop", "pgbouncer")


def is_paused(host: WorkloadHost) -> bool:
    console = ("runuser", "-u", "postgres", "--", "psql", "-XAtq", "-d", CONSOLE, "-c", "SHOW DATABASES;")
    (row,) = [line for line in host.run(*console).stdout.splitlines() if line.startswith("postgres|")]
    return row.split("|")[-2] == "1"


def test_clients_of_pgbouncer_wait_until_recover(pooled: PostgresqlPair) -> None:
    host, more = pooled.second, {"pgbouncer": CONSOLE, "stop": True}
    run(pooled, host, "check", **more)
    run(pooled, host, "prepare", **more)
    host.run(
        "systemd-run", "--quiet", "--unit=query", "--collect", "--property=StandardOutput=file:/tmp/answer", *QUERY
    )
    assert (is_paused(host), host.shell("cat /tmp/answer")) == (True, "")
    run(pooled, host, "recover", **more)
    wait_until(lambda: host.shell("cat /tmp/answer") == "42\n", "the client gets its answer")
    assert (is_paused(host), host.record("postgresql")) == (False, None)


def test_recover_accepts_a_pgbouncer_that_was_restarted(pooled: PostgresqlPair) -> None:
    more = {"pgbouncer": CONSOLE}
    run(pooled, pooled.second, "prepare", **more)
    pooled.second.run("systemctl", "restart", "pgbouncer")
    run(pooled, pooled.second, "recover", **more)
    assert pooled.second.run(*QUERY).stdout == "42\n"


def test_pgbouncer_that_was_paused_before_stays_paused(pooled: PostgresqlPair) -> None:
    more = {"pgbouncer": CONSOLE}
    pooled.second.run("runuser", "-u", "postgres", "--", "psql", "-Xq", "-d", CONSOLE, "-c", "PAUSE postgres;")
    run(pooled, pooled.second, "prepare", **more)
    run(pooled, pooled.second, "recover", **more)
    assert is_paused(pooled.second)


REPLICATION = "/etc/postgresql/15/main/conf.d/replication.conf"
PAGE = "docs/ready-hooks/postgresql.md"
PGPASS = "/var/lib/postgresql/.pgpass"


@pytest.mark.follows(
    PAGE,
    "site.yml",
    "# /etc/postgresql/15/main/conf.d/replication.conf",
    "# /etc/postgresql/15/main/pg_hba.conf",
    "# /var/lib/postgresql/.pgpass",
)
def test_printed_play_hands_the_primary_over_and_back(pair: PostgresqlPair, tmp_path: Path) -> None:
    names = "".join(f"{host.host.address} {host.host.name}\n" for host in (pair.first, pair.second))
    for role in ("postgres", "replicator"):
        pair.ask(pair.first, f"ALTER ROLE {role} PASSWORD 'PASSWORD'")
    for host in (pair.first, pair.second):
        host.write("/etc/hosts", "127.0.0.1 localhost\n" + names)
        host.write(REPLICATION, find(PAGE, "# " + REPLICATION).text)
        host.write(HBA, "local all all peer\n" + find(PAGE, "# " + HBA).text)
        host.write(PGPASS, find(PAGE, "# " + PGPASS).text, 0o600)
        host.run("chown", "postgres:", PGPASS)
        host.run("systemctl", "reload", UNIT)
    with printed_play("postgresql", tmp_path, pair.first, pair.second) as play:
        play.apply()
        play.prepare("Reboot")
        assert pair.roles() == ["", "primary"]
        pair.first.host.reboot()
        play.recover()
        assert pair.roles() == ["standby", "primary"]
        pair.wait_for_streaming(pair.second)
        play.prepare("Reboot", pair.second.host.name)
        play.recover()
        assert pair.roles() == ["primary", "standby"]
        assert pair.ask(pair.first, "SHOW synchronous_standby_names") == "*"


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({"replica": "host=10.77.0.250 connect_timeout=2"}, "10.77.0.250"),
        ({"cluster": "15/mian"}, "15/mian"),
        ({"unit": "postgresql@15-mian.service"}, "postgresql@15-mian.service"),
        ({"primary_conninfo": "host=127.0.0.1 user=nobody"}, "nobody"),
        ({"pgpass": "/etc/passwd"}, "/etc/passwd"),
        ({"user": "postgers"}, "postgers"),
    ],
)
def test_check_names_the_mistake(unchanged: PostgresqlPair, more: dict[str, Any], named: str) -> None:
    done = attempt(unchanged, unchanged.first, "check", **more)
    assert (done.returncode, named in done.stderr) == (1, True), done.stderr


def test_check_and_dry_run_accept_both_hosts_and_change_nothing(unchanged: PostgresqlPair) -> None:
    assert "can take over" in run(unchanged, unchanged.first, "check")
    run(unchanged, unchanged.second, "check")
    assert f"would stop {UNIT}" in run(unchanged, unchanged.first, "prepare", dry_run=True)
    assert (unchanged.roles(), phase(unchanged.first)) == (["primary", "standby"], None)


def signal_process(host: WorkloadHost, title: str, name: str) -> None:
    host.run("pkill", f"-{name}", "-f", f"^postgres: 15/main: {title}")


def kill_at(pair: PostgresqlPair, when: str, sql: str) -> None:
    """Run prepare on the first host, and kill it before or after psql runs this SQL."""
    host = pair.first
    hang = "touch /tmp/hangs; exec sleep 600"
    steps = hang if when == BEFORE else f'real "$@"; {hang}'
    psql = host.write("/usr/local/bin/psql", PSQL.format(sql=sql, steps=steps), 0o755)
    host.start_hook("postgresql", "prepare", pair.options(host), seconds=SECONDS)
    wait_until(
        lambda: host.run("test", "-e", "/tmp/hangs", check=False).returncode == 0,
        f"psql hangs at {sql}",
        lambda: host.run("journalctl", "--no-pager", "--unit=hook", check=False).stdout,
    )
    host.kill("hook")
    psql.unlink()
    host.run("rm", "/tmp/hangs")


PSQL = """#!/bin/sh
sql=$(cat)
real() {{ printf '%s\\n' "$sql" | /usr/bin/psql "$@"; }}
case $sql in
    "{sql}"* | "SELECT {sql}"*) {steps} ;;
esac
real "$@"
"""
