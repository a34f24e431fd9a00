# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Lines of the log, as text and as journald's fields; and words for the service manager."""

from __future__ import annotations

import io
import logging
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import pytest

from hook_runner import log as log_module
from hook_runner.log import LEVELS, LogHandler, log_to, set_level, with_fields
from hook_runner.service.systemd import SystemdNotifier


def log(stream: TextIO | None = None, level: str = "info") -> logging.Logger:
    log_to(LogHandler(stream))
    set_level(level)
    return logging.getLogger("hook_runner.tests")


def fields_of(message: bytes) -> dict[str, str]:
    """The fields of a message in journald's own format, of which only the form of one line each is used."""
    return dict(line.split("=", 1) for line in message.decode().splitlines())


@pytest.fixture
def journald(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """The socket of a journald to which stderr leads."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as received:
        received.bind(str(tmp_path / "socket"))
        received.settimeout(30)
        monkeypatch.setattr(log_module, "JOURNALD_SOCKET", str(tmp_path / "socket"))
        about = os.fstat(2)
        monkeypatch.setenv("JOURNAL_STREAM", f"{about.st_dev}:{about.st_ino}")
        yield received


def test_lines_of_text_carry_the_fields_behind_them() -> None:
    stream = io.StringIO()
    log(stream).warning("gone", extra=with_fields(azure_event_id="A\nB", azure_event_type="Reboot"))
    assert stream.getvalue() == "warning gone AZURE_EVENT_ID=A?B AZURE_EVENT_TYPE=Reboot\n"


def test_the_threshold_leaves_out_what_is_less() -> None:
    stream = io.StringIO()
    for name, level in LEVELS.items():
        log(stream, "warning").log(level, name)
    assert [line.split()[0] for line in stream.getvalue().splitlines()] == ["warning", "error"]


def test_nothing_in_a_text_begins_a_line_or_steers_a_terminal() -> None:
    stream = io.StringIO()
    log(stream).info("one\r\ntwo\x1b[2J\u2028three\u202e\ud800")
    assert stream.getvalue() == "info    one??two?[2J?three?\\ud800\n"


def test_a_closed_stream_stops_nothing() -> None:
    stream = io.StringIO()
    stream.close()
    log(stream).info("no reader")


def test_journald_gets_fields(journald: socket.socket) -> None:
    log().log(LEVELS["notice"], "appeared", extra=with_fields(azure_event_id="A1", azure_event_status="Scheduled"))
    assert fields_of(journald.recv(65536)) == {
        "MESSAGE": "appeared",
        "PRIORITY": "5",
        "SYSLOG_IDENTIFIER": "azure-scheduled-events",
        "AZURE_EVENT_ID": "A1",
        "AZURE_EVENT_STATUS": "Scheduled",
    }


def test_a_journald_that_does_not_read_costs_lines_and_no_time(journald: socket.socket) -> None:
    logger = log()
    for number in range(3000):
        logger.info(str(number))
    journald.setblocking(False)
    taken = 0
    try:
        while journald.recv(65536):
            taken += 1
    except BlockingIOError:
        pass
    logger.info("again")
    assert 0 < taken < 3000
    assert [fields_of(journald.recv(65536))["MESSAGE"] for _line in range(2)] == [
        f"{3000 - taken} lines were lost: the reader was too slow",
        "again",
    ]


def test_a_reader_that_does_not_read_costs_lines_and_no_time() -> None:
    reader, writer = os.pipe()
    with open(writer, "w") as stream, open(reader, "rb") as pipe:
        logger = log(stream)
        for number in range(3000):
            logger.info("%d %s", number, "x" * 100)
        lines = os.read(pipe.fileno(), 1 << 20).decode().splitlines()
        logger.info("again")
        assert 0 < len(lines) < 3000
        lines_read = os.read(pipe.fileno(), 1 << 20).decode().splitlines()
        assert lines_read == [f"warning {3000 - len(lines)} lines were lost: the reader was too slow", "info    again"]


def test_a_line_longer_than_a_pipe_costs_no_time() -> None:
    reader, writer = os.pipe()
    with open(writer, "w") as stream, open(reader, "rb"):
        log(stream).info("x" * (1 << 20))


def test_a_service_manager_that_does_not_listen_stops_nothing(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as deaf:
        deaf.bind(str(tmp_path / "notify"))
        notifier = SystemdNotifier({"NOTIFY_SOCKET": str(tmp_path / "notify")})
        for _number in range(1000):
            notifier.notify("WATCHDOG=1")


@pytest.mark.parametrize("stream", ["", "1:2", "nonsense"])
def test_without_journald_lines_go_to_stderr(
    stream: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("JOURNAL_STREAM", stream)
    log().info("watching")
    assert capsys.readouterr().err == "info    watching\n"


@pytest.mark.parametrize("abstract", [False, True])
def test_service_manager_is_notified(tmp_path: Path, abstract: bool) -> None:
    name = f"@test-{os.getpid()}" if abstract else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as received:
        received.settimeout(30)
        received.bind("\0" + name[1:] if abstract else name)
        notifier = SystemdNotifier({"NOTIFY_SOCKET": name})
        notifier.notify("READY=1", "STATUS=good")
        assert received.recv(1000) == b"READY=1\nSTATUS=good"
        notifier.status("same")
        notifier.status("same")
        notifier.status("other")
        assert [received.recv(1000), received.recv(1000)] == [b"STATUS=same", b"STATUS=other"]


@pytest.mark.parametrize("address", ["", "/no/such/socket"])
def test_without_a_service_manager_nothing_happens(address: str) -> None:
    SystemdNotifier({"NOTIFY_SOCKET": address}).notify("READY=1")


@pytest.mark.parametrize(
    "environment, seconds",
    [
        ({"WATCHDOG_USEC": "30000000"}, 30.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": str(os.getpid())}, 30.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "1"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
        ({}, None),
    ],
)
def test_the_watchdog_is_this_process_s_business_only_when_it_says_so(
    environment: dict[str, str], seconds: float
) -> None:
    assert SystemdNotifier(environment).watchdog == seconds
