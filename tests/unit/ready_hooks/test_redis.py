# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The pure parts of the ready hook redis, and its client with a server that sends given bytes."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ready_hooks.core.address import Address, address
from ready_hooks.core.deadline import Deadline
from ready_hooks.core.errors import HookError, OutOfTime
from ready_hooks.hooks.redis import save_mode, state
from ready_hooks.hooks.redis.resp import RedisError, connected
from ready_hooks.hooks.redis.servers import Account

REPLICATION = """# Replication\r
role:master\r
connected_slaves:2\r
slave0:ip=10.0.0.2,port=6379,state=online,offset=1000,lag=0\r
slave1:ip=fd00::3,port=6379,state=wait_bgsave,offset=0,lag=0\r
master_failover_state:no-failover\r
master_repl_offset:1500\r
"""
FIRST, SECOND = "10.0.0.2:6379", "[fd00::3]:6379"


def master(info: str = REPLICATION) -> state.Instance:
    return state.instance_of(state.fields(info))


def known(address: str = FIRST, is_down: bool = False, priority: int = 100) -> state.Known:
    return state.Known(address, is_down, priority)


def test_instance_of_a_master_has_its_replicas() -> None:
    found = master()
    assert (found.role, found.offset) == ("master", 1500)
    assert found.replicas == (state.Replica(FIRST, True, 1000), state.Replica(SECOND, False, 0))


def test_instance_of_a_replica_has_its_master() -> None:
    info = "redis_version:7.0.15\r\nrole:slave\r\nmaster_host:10.0.0.1\r\nmaster_port:6379\r\nmaster_link_status:up\r\n"
    found = master(info)
    assert (found.version, found.master, found.link_is_up) == ((7, 0, 15), "10.0.0.1:6379", True)


def test_known_of_reads_flags_and_priority() -> None:
    answer = [
        ["ip", "10.0.0.2", "port", "6379", "flags", "slave", "slave-priority", "100"],
        ["ip", "10.0.0.3", "port", "6379", "flags", "s_down,slave,disconnected", "slave-priority", "100"],
        ["ip", "10.0.0.4", "port", "6379", "flags", "slave", "slave-priority", "0"],
    ]
    assert [each.can_be_promoted for each in state.known_of(answer)] == [True, False, False]


@pytest.mark.parametrize(
    ("replicas", "most_lag", "problem"),
    [
        ([known()], 500, None),
        ([known()], 499, "500 bytes"),
        ([], 500, "no healthy replica"),
        ([known(is_down=True)], 500, "no healthy replica"),
        ([known(priority=0)], 500, "no healthy replica"),
        ([known(), known(SECOND)], 500, "not connected"),
        ([known(), known(SECOND, is_down=True)], 500, None),
        ([known(), known("10.0.0.9:6379")], 500, "not connected"),
    ],
)
def test_refusal_if_sentinel_may_promote_a_replica_that_lags(
    replicas: list[state.Known], most_lag: int, problem: str | None
) -> None:
    found = state.refusal(master(), replicas, most_lag)
    assert found is None if problem is None else problem in str(found)


def test_caught_up_needs_every_replica_that_may_be_promoted() -> None:
    assert state.caught_up(master(), [known()], 1000)
    assert not state.caught_up(master(), [known()], 1001)
    assert not state.caught_up(master(), [known(), known(SECOND)], 1000)
    assert state.caught_up(master(), [known(), known(SECOND, priority=0)], 1000)
    assert not state.caught_up(master(), [], 0)


def test_odd_answers_are_not_a_healthy_instance() -> None:
    for text in ("", "garbage", "role:", "slave0:ip=", "slaveX:offset=1\r\nrole:master\r\nmaster_repl_offset:x"):
        assert master(text).offset == -1
        assert state.refusal(master(text), [known()], 10) is not None
    assert not state.persistence_of({}).last_save_succeeded


def test_save_mode_is_a_boolean_or_auto() -> None:
    assert [save_mode(value) for value in (True, "false", "auto")] == ["true", "false", "auto"]
    with pytest.raises(ValueError):
        save_mode("now")


@contextmanager
def server(*answers: bytes) -> Iterator[Address]:
    """A server that answers each of its clients so, and closes the connection."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            for answer in answers:
                client, _address = listening.accept()
                with client:
                    client.recv(4096)
                    client.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield Address("", *listening.getsockname()[:2])
        thread.join()


def ask(answer: bytes) -> object:
    with server(answer) as at, connected(at, Deadline(60), None, None) as client:
        return client.ask("PING")


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (b"+PONG\r\n", "PONG"),
        (b":7\r\n", 7),
        (b"$4\r\na\r\nb\r\n", "a\r\nb"),
        (b"$-1\r\n", None),
        (b"*-1\r\n", None),
        (b"*2\r\n$1\r\na\r\n*1\r\n:1\r\n", ["a", [1]]),
    ],
)
def test_client_reads_the_answer(answer: bytes, expected: object) -> None:
    assert ask(answer) == expected


def test_client_raises_an_error_of_the_server_with_its_code() -> None:
    with pytest.raises(RedisError, match="refuses PING: NOAUTH") as raised:
        ask(b"-NOAUTH Authentication required.\r\n")
    assert raised.value.code == "NOAUTH"


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request\r\n", b"$x\r\n", b"$99999999999\r\n", b"*1\r\n" * 9])
def test_client_with_something_other_than_redis_is_an_error(answer: bytes) -> None:
    with pytest.raises(HookError, match="the connection failed"):
        ask(answer)


@pytest.mark.parametrize("answer", [b"", b"+PO", b"$9\r\nshort\r\n"])
def test_client_connects_again_once_if_the_server_closes_the_connection(answer: bytes) -> None:
    with server(answer, b"+PONG\r\n") as at, connected(at, Deadline(60), None, None) as client:
        assert client.ask("PING") == "PONG"
    with (
        server(answer, answer) as at,
        connected(at, Deadline(60), None, None) as client,
        pytest.raises(HookError, match="the connection failed"),
    ):
        client.ask("PING")


def test_command_that_must_not_repeat_is_sent_once() -> None:
    with server(b"", b"+OK\r\n") as at, connected(at, Deadline(60), None, None) as client:
        with pytest.raises(HookError, match="the connection failed"):
            client.ask("SENTINEL", "FAILOVER", again=False)
        assert client.ask("PING") == "OK"


def test_request_without_an_answer_in_time_is_not_sent_later() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        at = Address("", *listening.getsockname()[:2])
        with connected(at, Deadline(0), None, None) as client, pytest.raises(OutOfTime):
            client.ask("PING")
        peer, _address = listening.accept()
        # the connection was reset: nothing of it comes any more
        with peer, pytest.raises(ConnectionResetError):
            while peer.recv(4096):
                pass


def test_wrong_password_is_not_in_the_message() -> None:
    with (
        server(b"-WRONGPASS invalid username-password pair\r\n") as at,
        pytest.raises(RedisError, match="AUTH: WRONGPASS") as raised,
        connected(at, Deadline(60), "me", "hidden"),
    ):
        pass
    assert "hidden" not in str(raised.value)


def test_password_that_others_can_read_is_not_sent(tmp_path: Path) -> None:
    path = tmp_path / "password"
    path.write_text("word", encoding="utf-8")
    path.chmod(0o644)
    account = Account(Deadline(60), None, str(path))
    with pytest.raises(HookError, match="the secret is not used"), account.connected(address("127.0.0.1:1")):
        pass


def test_connection_to_nothing_names_the_address(tmp_path: object) -> None:
    for to in (address(f"{tmp_path}/missing"), address("127.0.0.1:1")):
        with pytest.raises(HookError, match="cannot be reached"), connected(to, Deadline(60), None, None):
            pass
