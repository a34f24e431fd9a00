# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The exit status of the command when a connection or its output ends early."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO

import pytest

from hook_runner.cli.main import main
from hook_runner.service.control_socket import NAME
from support.daemon.daemon_process import PYTHONPATH


@pytest.fixture
def config(tmp_path: Path) -> Path:
    made = tmp_path / "config.yml"
    made.write_text(f"run_directory: {tmp_path}\n")
    return made


def test_request_without_an_answer_fails(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    attempts = 50
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(config.parent / NAME))
        listener.listen()

        def close_each() -> None:
            """Close each connection at once: usually before the command has sent its request."""
            for _client in range(attempts):
                listener.accept()[0].close()

        server = threading.Thread(target=close_each, daemon=True)
        server.start()
        assert {main(["resume", "--config", str(config)]) for _attempt in range(attempts)} == {1}
        server.join()
    assert capsys.readouterr().err.count("closed the connection before the end of its answer") == attempts


def status(config: Path, *options: str, stdout: IO[bytes]) -> tuple[int, bytes]:
    """Run status; return the exit status and standard error."""
    command = [sys.executable, "-m", "hook_runner", "status", "--config", str(config), *options]
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": PYTHONPATH}
    done = subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, env=environment, check=False)
    return done.returncode, done.stderr


def test_reader_that_has_ended_does_not_change_the_exit_status(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with contextlib.closing(os.fdopen(writer, "wb")) as output:
        assert status(config, stdout=output) == (3, b"")
    monkeypatch.setattr(sys, "stdout", None)  # as after `>&-` of a shell
    assert main(["status", "--config", str(config)]) == 3


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_output_on_a_full_disk_is_an_error(config: Path, options: tuple[str, ...]) -> None:
    with open("/dev/full", "wb") as output:
        code, errors = status(config, *options, stdout=output)
    assert code == 1 and errors == b"azure-scheduled-events: the output cannot be written: No space left on device\n"
