# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The failover of the ready hook redis, with a Redis and a Sentinel that send given answers."""

from __future__ import annotations

import socketserver
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar, Union

import pytest

from ready_hooks.core.address import Address
from ready_hooks.core.deadline import Deadline
from ready_hooks.core.errors import HookError, OutOfTime
from ready_hooks.core.event import from_environment
from ready_hooks.core.hook import Run
from ready_hooks.core.record import Record
from ready_hooks.hooks.redis.failover import Failover
from ready_hooks.hooks.redis.resp import connected
from ready_hooks.hooks.redis.servers import Sentinel, Server
from support.ready_hooks.clock import Clock
from support.ready_hooks.hook_host import HookHost

Answer = Union[str, "list[Answer]"]

OLD: list[Answer] = ["10.0.0.1", "6379"]
# nothing listens there
NEW: list[Answer] = ["127.0.0.1", "1"]
INFO = "run_id:1\r\nrole:master\r\nslave0:ip=127.0.0.1,port=1,state=online,offset=9\r\nmaster_repl_offset:9\r\n"
REPLICA: list[Answer] = ["ip", NEW[0], "port", NEW[1], "flags", "slave", "slave-priority", "100"]
# answers to SENTINEL FAILOVER; without one the connection closes
OK, LOST = b"+OK\r\n", b""
REFUSED, ANOTHER_RUNS = b"-NOGOODSLAVE No suitable replica\r\n", b"-INPROG Failover already in progress\r\n"
# what Sentinel answers after that
SILENT, RUNNING, ABORTED, SWITCHED = "silent", "running", "aborted", "switched"


def encoded(value: Answer) -> bytes:
    if isinstance(value, str):
        return b"$%d\r\n%s\r\n" % (len(value), value.encode())
    return b"*%d\r\n" % len(value) + b"".join(map(encoded, value))


class Lab(socketserver.ThreadingTCPServer):
    """A master and its Sentinel at one address.

    Attributes:
        commands: the first two words of each command that has changed Redis.
        info: the answer to INFO.
        delay: seconds before each other answer of Redis.
    """

    daemon_threads = True

    def __init__(self, begun: bytes, later: list[str]) -> None:
        super().__init__(("127.0.0.1", 0), Connection)
        self._begun, self._later = begun, list(later)
        self._state = ABORTED
        self._is_asked = False
        self.commands: list[str] = []
        self.info, self.delay = INFO, 0.0

    @property
    def at(self) -> Address:
        return Address("", "127.0.0.1", int(self.server_address[1]))

    def answer(self, words: list[str]) -> bytes:
        """Return the answer to a command; b"" closes the connection."""
        if words[0] == "SENTINEL":
            return self._answer_of_sentinel(words[1])
        if words[0] == "INFO":
            return encoded(self.info)
        time.sleep(self.delay)
        self.commands.append(" ".join(words[:2]))
        return OK

    def _answer_of_sentinel(self, question: str) -> bytes:
        if question == "REPLICAS":
            return encoded([REPLICA])
        if question == "FAILOVER":
            self._is_asked = True
            return self._begun
        if question == "MASTER" and self._is_asked:
            self._state = self._later.pop(0) if len(self._later) > 1 else self._later[0]
        if self._state == SILENT:
            return b""
        if question == "MASTER":
            return encoded(["flags", "master,failover_in_progress" if self._state == RUNNING else "master"])
        return encoded(NEW if self._state == SWITCHED else OLD)


class Connection(socketserver.StreamRequestHandler):
    server: Lab

    def handle(self) -> None:
        while True:
            words = self._command()
            answer = self.server.answer(words) if words else b""
            if not answer:
                return
            self.wfile.write(answer)

    def _command(self) -> list[str]:
        count = self.rfile.readline()
        return [self._word() for _each in range(int(count[1:]))] if count else []

    def _word(self) -> str:
        size = int(self.rfile.readline()[1:])
        return self.rfile.read(size + 2)[:-2].decode()


SomeLab = TypeVar("SomeLab", bound=Lab)


@contextmanager
def serving(made: SomeLab) -> Iterator[SomeLab]:
    with made:
        threading.Thread(target=made.serve_forever, args=(0.05,), daemon=True).start()
        try:
            yield made
        finally:
            made.shutdown()


@pytest.fixture
def record(tmp_path: Path) -> Record:
    return Record(str(tmp_path / "records"), "redis", "redis")


def fail_over(made: Lab, record: Record, most_pause: float = 1.0) -> None:
    clock = Clock()
    deadline = Deadline(10, clock, clock.sleep)
    run = Run("redis", {"most_pause": most_pause}, from_environment({}), deadline, record, dry_run=False)
    with connected(made.at, deadline, None, None) as server, connected(made.at, deadline, None, None) as sentinel:
        Failover(run, Server(server), Sentinel(sentinel, "mymaster")).fail_over()


@pytest.mark.parametrize(
    ("begun", "later"),
    [
        (OK, [RUNNING, SWITCHED]),
        (LOST, [RUNNING, SWITCHED]),
        (ANOTHER_RUNS, [RUNNING, SWITCHED]),
        (OK, [RUNNING, *[SILENT] * 4, SWITCHED]),
    ],
)
def test_writes_wait_until_the_instance_follows_the_new_master(begun: bytes, later: list[str], record: Record) -> None:
    with serving(Lab(begun, later)) as made:
        fail_over(made, record)
    assert made.commands == [
        *["CLIENT PAUSE"] * 2,
        f"REPLICAOF {NEW[0]}",
        "CONFIG REWRITE",
        "CLIENT UNPAUSE",
        *["CLIENT KILL"] * 2,
    ]
    assert record.load() == {"phase": "switched"}


@pytest.mark.parametrize(("begun", "later"), [(OK, RUNNING), (LOST, RUNNING), (OK, SILENT), (LOST, SILENT)])
def test_writes_wait_for_recover_while_sentinel_may_fail_over(begun: bytes, later: str, record: Record) -> None:
    with serving(Lab(begun, [later])) as made, pytest.raises(OutOfTime, match="has not ended in time"):
        fail_over(made, record)
    assert made.commands == ["CLIENT PAUSE"] * 2
    assert record.load() == {"phase": "failover begun"}


@pytest.mark.parametrize(
    ("begun", "later", "problem"),
    [(REFUSED, ABORTED, "NOGOODSLAVE"), (OK, ABORTED, "has aborted"), (LOST, ABORTED, "has aborted")],
)
def test_writes_continue_if_sentinel_says_that_there_is_no_failover(
    begun: bytes, later: str, problem: str, record: Record
) -> None:
    with serving(Lab(begun, [later])) as made, pytest.raises(HookError, match=problem):
        fail_over(made, record)
    assert made.commands == [*["CLIENT PAUSE"] * 2, "CLIENT UNPAUSE"]
    assert record.load() is None


def test_writes_continue_after_the_end_of_the_time_although_redis_is_slow(record: Record) -> None:
    with serving(Lab(OK, [ABORTED])) as made:
        made.info, made.delay = INFO.replace("offset=9", "offset=8"), 0.05
        with pytest.raises(OutOfTime, match="do not catch up"):
            fail_over(made, record, most_pause=60.0)
    assert made.commands == ["CLIENT PAUSE", "CLIENT UNPAUSE"]
    assert record.load() is None


class Loading(Lab):
    """An old master after a boot: it loads its data while it answers the first questions, and is replaced by then."""

    def __init__(self) -> None:
        super().__init__(OK, [SWITCHED])
        self._state = SWITCHED
        self._asked = 0

    def answer(self, words: list[str]) -> bytes:
        self._asked += words[0] == "INFO"
        is_loading = self._asked < 10
        if words[0] == "REPLICAOF" and is_loading:
            return b"-LOADING Redis is loading the dataset in memory\r\n"
        if words[0] == "REPLICAOF":
            self.info = "role:slave\r\nmaster_link_status:up\r\n"
        return encoded(f"{self.info}loading:{is_loading:d}\r\n") if words[0] == "INFO" else super().answer(words)


def test_recover_waits_until_the_instance_has_loaded_its_data(hook_host: HookHost) -> None:
    hook_host.record("redis").save({"phase": "failover begun"})
    with serving(Loading()) as made:
        hook_host.hook("redis", address=str(made.at), sentinels=str(made.at)).recover()
    assert made.commands[0] == f"REPLICAOF {NEW[0]}"
    assert hook_host.record("redis").load() is None


class Stopping(Lab):
    """A Sentinel that stops after it has said once that its failover is under way."""

    def __init__(self) -> None:
        super().__init__(OK, [])
        self._state = RUNNING

    def _answer_of_sentinel(self, question: str) -> bytes:
        answer = super()._answer_of_sentinel(question)
        if question == "MASTER":
            self._state = SILENT
        return answer


def test_recover_asks_the_next_sentinel_if_one_stops_during_the_failover(hook_host: HookHost) -> None:
    hook_host.record("redis").save({"phase": "failover begun"})
    with serving(Stopping()) as first, serving(Loading()) as second:
        sentinels = [str(first.at), str(second.at)]
        hook_host.hook("redis", address=str(second.at), sentinels=sentinels).recover()
    assert second.commands[0] == f"REPLICAOF {NEW[0]}"
    assert hook_host.record("redis").load() is None


def test_recover_does_not_wait_for_a_sentinel_where_none_is_configured(hook_host: HookHost) -> None:
    hook_host.record("redis").save({"phase": "failover begun"})
    with serving(Lab(OK, [ABORTED])) as made, pytest.raises(HookError, match="^sentinels: none is configured"):
        hook_host.hook("redis", address=str(made.at)).recover()
    assert hook_host.clock.sleeps == []
