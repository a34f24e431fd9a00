# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The ready hook redis, and its page, with Debian's Redis and Sentinel on two hosts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.ready_hooks.printed_play import entries, printed_play
from support.ready_hooks.redis_pair import NAME, PASSWORD, SECRET, SENTINEL_PORT, RedisPair, Writer
from support.ready_hooks.workload_host import RECORDS, WorkloadHost
from support.wait import wait_until

pytestmark = pytest.mark.all

HOOK = "redis"


@pytest.fixture(scope="module")
def made(workload_host: Callable[[str], WorkloadHost]) -> RedisPair:
    return RedisPair(workload_host("redis1"), workload_host("redis2"))


@pytest.fixture
def unchanged(made: RedisPair) -> RedisPair:
    """The first host has the master, the second one a replica in sync; for a test that changes nothing."""
    if not made.is_fresh:
        made.start()
    return made


@pytest.fixture
def pair(unchanged: RedisPair) -> RedisPair:
    unchanged.is_fresh = False
    return unchanged


@pytest.fixture
def options(made: RedisPair) -> dict[str, Any]:
    return {"password_file": SECRET, "sentinels": made.sentinels}


def roles(pair: RedisPair) -> tuple[str, str]:
    return pair.instance(pair.first).role, pair.instance(pair.second).role


def test_prepare_again_and_a_reboot_keep_the_record_until_the_replica_is_in_sync(
    pair: RedisPair, options: dict[str, Any]
) -> None:
    for event in ("E1", "E2"):
        assert pair.first.hook(HOOK, "prepare", options, event={"ID": event}).returncode == 0
    assert pair.first.record(HOOK) == {"phase": "switched"}
    pair.first.host.reboot()
    failed = pair.first.hook(HOOK, "recover", options, seconds=2)
    assert (failed.returncode, "cannot be reached" in failed.stderr) == (1, True)
    pair.first.run("systemctl", "start", "redis-server")
    assert roles(pair) == ("slave", "master")
    for _attempt in range(2):
        assert pair.first.hook(HOOK, "recover", options).returncode == 0
    assert pair.first.record(HOOK) is None


def test_recover_of_an_old_master_follows_the_new_one(pair: RedisPair, options: dict[str, Any]) -> None:
    assert pair.first.hook(HOOK, "prepare", options).returncode == 0
    # as after a restart with a configuration file that could not be written
    pair.ask(pair.first, "REPLICAOF", "NO", "ONE")
    assert pair.first.hook(HOOK, "recover", options).returncode == 0
    assert roles(pair) == ("slave", "master")


def test_replica_saves_only_and_recover_does_nothing(pair: RedisPair, options: dict[str, Any]) -> None:
    pair.ask(pair.first, "SET", "key", "1")
    wait_until(lambda: pair.ask(pair.second, "GET", "key") == "1")
    dump = pair.second.host.file("/var/lib/redis/dump.rdb")
    dump.unlink(missing_ok=True)
    assert pair.second.hook(HOOK, "prepare", options).returncode == 0
    assert dump.exists()
    assert (roles(pair), pair.second.record(HOOK)) == (("master", "slave"), None)
    assert pair.second.hook(HOOK, "recover", options).returncode == 0


@pytest.mark.parametrize(
    ("save", "settings", "saves"),
    [
        ("auto", {}, True),
        ("auto", {"save": ""}, False),
        (True, {"save": ""}, True),
        ("auto", {"appendonly": "yes"}, False),
        (False, {}, False),
    ],
)
def test_save_auto_saves_if_the_next_start_reads_the_file(
    pair: RedisPair, save: Any, settings: dict[str, str], saves: bool
) -> None:
    for name, value in settings.items():
        pair.ask(pair.first, "CONFIG", "SET", name, value)
    pair.ask(pair.first, "SET", "key", "1")
    dump = pair.first.host.file("/var/lib/redis/dump.rdb")
    dump.unlink(missing_ok=True)
    assert pair.first.hook(HOOK, "prepare", {"password_file": SECRET, "save": save}).returncode == 0
    assert dump.exists() is saves
    assert (roles(pair), pair.first.record(HOOK)) == (("master", "slave"), None)


def test_save_that_fails_is_a_failure(pair: RedisPair) -> None:
    pair.first.shell("chown root:root /var/lib/redis")
    result = pair.first.hook(HOOK, "prepare", {"password_file": SECRET})
    assert (result.returncode, "the save has failed" in result.stderr) == (1, True)


def stall(pair: RedisPair, size: int) -> None:
    """Stop the replica, and write so many bytes that it does not have."""
    pair.signal(pair.second, "STOP")
    pair.ask(pair.first, "SET", "large", "x" * size)


def test_replica_that_lags_too_far_is_refused(pair: RedisPair, options: dict[str, Any]) -> None:
    stall(pair, 100_000)
    result = pair.first.hook(HOOK, "prepare", {**options, "most_lag": 50_000})
    pair.signal(pair.second, "CONT")
    assert (result.returncode, "bytes behind" in result.stderr) == (1, True)
    assert pair.writes_work(pair.first)
    assert (roles(pair), pair.first.record(HOOK)) == (("master", "slave"), None)


def test_writes_continue_if_the_replica_does_not_catch_up_in_time(pair: RedisPair, options: dict[str, Any]) -> None:
    stall(pair, 100)
    result = pair.first.hook(HOOK, "prepare", {**options, "most_pause": 1})
    assert pair.writes_work(pair.first)
    pair.signal(pair.second, "CONT")
    assert (result.returncode, "do not catch up in time" in result.stderr) == (1, True)
    assert (roles(pair), pair.first.record(HOOK)) == (("master", "slave"), None)


def forbid_the_promotion(pair: RedisPair) -> None:
    """Let the replica refuse the command of Sentinel, which aborts its failover after five seconds."""
    pair.ask(pair.second, "ACL", "SETUSER", "default", "-replicaof", "-slaveof")
    pair.ask(pair.first, "SENTINEL", "SET", NAME, "failover-timeout", "5000", port=SENTINEL_PORT)


def test_writes_continue_if_sentinel_aborts_the_failover(pair: RedisPair, options: dict[str, Any]) -> None:
    forbid_the_promotion(pair)
    result = pair.first.hook(HOOK, "prepare", options)
    assert (result.returncode, "aborted" in result.stderr) == (1, True)
    assert pair.writes_work(pair.first)
    assert (roles(pair), pair.first.record(HOOK)) == (("master", "slave"), None)


def test_writes_wait_until_recover_if_the_hook_ends_before_the_failover(
    pair: RedisPair, options: dict[str, Any]
) -> None:
    forbid_the_promotion(pair)
    result = pair.first.hook(HOOK, "prepare", options, seconds=3)
    assert (result.returncode, "has not ended in time" in result.stderr) == (1, True)
    assert pair.writes_wait(pair.first)
    assert pair.first.hook(HOOK, "recover", options).returncode == 0
    assert pair.writes_work(pair.first)
    assert (roles(pair), pair.first.record(HOOK)) == (("master", "slave"), None)


def test_crash_of_sentinel_during_the_failover_loses_no_write(pair: RedisPair, options: dict[str, Any]) -> None:
    pair.ask(pair.first, "SENTINEL", "SIMULATE-FAILURE", "crash-after-promotion", port=SENTINEL_PORT)
    with Writer(pair) as writer:
        writer.wait_for_more()
        result = pair.first.hook(HOOK, "prepare", {**options, "sentinels": pair.sentinels[:1]})
        assert result.returncode == 0, result.stderr
        writer.wait_for_more()
    assert (roles(pair), pair.first.record(HOOK)) == (("slave", "master"), {"phase": "switched"})
    assert writer.lost(pair.second) == []


def test_recover_after_a_kill_during_the_failover_follows_the_new_master(
    pair: RedisPair, options: dict[str, Any]
) -> None:
    with Writer(pair) as writer:
        writer.wait_for_more()
        # the state that a kill after SENTINEL FAILOVER leaves
        record = {"version": 1, "use": HOOK, "data": {"phase": "failover begun"}}
        pair.ask(pair.first, "CLIENT", "PAUSE", "600000", "WRITE")
        offset = pair.instance(pair.first).offset
        wait_until(lambda: pair.instance(pair.second).offset >= offset)
        pair.first.write(f"{RECORDS}/{HOOK}.json", json.dumps(record))
        pair.ask(pair.first, "SENTINEL", "FAILOVER", NAME, port=SENTINEL_PORT)
        wait_until(lambda: pair.master() == pair.second.host.address)
        assert pair.first.hook(HOOK, "recover", options, seconds=60).returncode == 0
        assert roles(pair) == ("slave", "master")
        writer.wait_for_more()
    assert writer.lost(pair.second) == []


def test_first_sentinel_that_answers_is_used(pair: RedisPair, options: dict[str, Any]) -> None:
    pair.first.run("systemctl", "stop", "redis-sentinel")
    wait_until(lambda: pair.master() == pair.first.host.address)
    check = pair.first.hook(HOOK, "check", options)
    assert (check.returncode, pair.sentinels[0] in check.stderr) == (0, True)
    assert pair.first.hook(HOOK, "prepare", options).returncode == 0
    assert roles(pair) == ("slave", "master")


def test_user_of_an_acl_without_rights_is_found_by_check(pair: RedisPair, options: dict[str, Any]) -> None:
    granted = "+info +auth +acl|whoami +acl|dryrun +bgsave +config|get"
    pair.ask(pair.first, "ACL", "SETUSER", "hook", "on", ">hook-word", *granted.split())
    pair.first.write("/etc/redis-hook/hook-word", "hook-word", 0o600)
    chosen = {**options, "user": "hook", "password_file": "/etc/redis-hook/hook-word"}
    result = pair.first.hook(HOOK, "check", chosen)
    assert (result.returncode, "may not run CLIENT PAUSE" in result.stderr) == (1, True)
    assert pair.first.hook(HOOK, "prepare", chosen).returncode == 1
    more = "+client|pause +client|unpause +client|kill +replicaof +config|rewrite"
    pair.ask(pair.first, "ACL", "SETUSER", "hook", *more.split())
    assert pair.first.hook(HOOK, "check", chosen).returncode == 0
    assert pair.first.hook(HOOK, "prepare", chosen).returncode == 0
    assert roles(pair) == ("slave", "master")


def test_recover_after_a_kill_during_the_pause_lets_writes_continue(pair: RedisPair, options: dict[str, Any]) -> None:
    stall(pair, 100)
    pair.first.start_hook(HOOK, "prepare", {**options, "most_pause": "10m"}, seconds=3600)
    wait_until(lambda: pair.first.record(HOOK) == {"phase": "paused"})
    wait_until(lambda: pair.writes_wait(pair.first), "writes wait")
    pair.first.kill("hook")
    pair.signal(pair.second, "CONT")
    assert pair.writes_wait(pair.first)
    assert pair.first.hook(HOOK, "recover", options).returncode == 0
    assert pair.writes_work(pair.first)
    assert (roles(pair), pair.first.record(HOOK)) == (("master", "slave"), None)


def test_check_and_dry_run_of_a_good_configuration_change_nothing(
    unchanged: RedisPair, options: dict[str, Any]
) -> None:
    first = unchanged.first
    wait_until(lambda: first.hook(HOOK, "check", options).stderr == "", "the Sentinels know each other")
    result = first.hook(HOOK, "check", options)
    assert (result.returncode, "Redis 7.0.15, master" in result.stdout) == (0, True)
    assert unchanged.second.hook(HOOK, "check", options).returncode == 0
    result = first.hook(HOOK, "prepare", {**options, "dry_run": True})
    assert result.stdout == "would fail over to a replica\nwould save the data set\n"
    assert (roles(unchanged), first.record(HOOK)) == (("master", "slave"), None)
    assert not first.host.file("/var/lib/redis/dump.rdb").exists()


@pytest.mark.parametrize(
    ("changes", "subject"),
    [
        ({"address": "/run/redis/missing.sock"}, "/run/redis/missing.sock"),
        ({"address": f"127.0.0.1:{SENTINEL_PORT}"}, f"127.0.0.1:{SENTINEL_PORT}"),
        ({"password_file": None}, "NOAUTH"),
        ({"user": "nobody"}, "WRONGPASS"),
        ({"master_name": "other"}, "other"),
        ({"sentinels": ["127.0.0.1:1"]}, "127.0.0.1:1"),
    ],
)
def test_wrong_option_is_found_by_check_and_fails_prepare(
    unchanged: RedisPair, options: dict[str, Any], changes: dict[str, Any], subject: str
) -> None:
    for verb in ("check", "prepare"):
        result = unchanged.first.hook(HOOK, verb, {**options, **changes})
        assert (result.returncode, subject in result.stderr) == (1, True), result
    assert (roles(unchanged), unchanged.first.record(HOOK)) == (("master", "slave"), None)


def test_printed_play_fails_over_for_an_event(pair: RedisPair, tmp_path: Path) -> None:
    (entry,) = entries("redis")
    for host in pair.hosts:
        for other in pair.hosts:
            host.shell(f"echo {other.host.address} {other.host.name}.example >>/etc/hosts")
        host.write(entry["password_file"], PASSWORD, 0o600)
    with printed_play("redis", tmp_path, *pair.hosts) as play:
        play.apply()
        with Writer(pair) as writer:
            writer.wait_for_more()
            play.prepare("Reboot", vm="redis1")
            assert pair.master() == pair.second.host.address
            writer.wait_for_more()
        assert writer.lost(pair.second) == []
        play.recover()
        assert pair.instance(pair.first).link_is_up
        assert pair.first.record("redis") is None
