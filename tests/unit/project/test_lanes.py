# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Lanes of checks and tests end with every process that they started, and only one run works in a checkout."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from support.repository import REPOSITORY
from support.wait import wait_until
from tools.lanes import NEED_ROOT

# lanes of a daemon with a session of its own, also of one that ignores SIGTERM; one that fails, one that succeeds
MAKEFILE = """
stubborn: TRAP := trap '' TERM;
stubborn daemon:
	@$(TRAP) setsid --fork sh -c 'echo $$$$ > daemon.new; mv daemon.new daemon.pid; exec sleep 600'; sleep 600
fails:
	@echo some output; echo '{"wall": 5, "cpu": 7}' > .cache/lanes/fails.json; false
works:
	@echo '{"wall": 3, "cpu": 4}' > .cache/lanes/works.json
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / "Makefile").write_text(MAKEFILE, encoding="utf-8")
    return tmp_path


@contextmanager
def lanes(checkout: Path, *names: str) -> Iterator[subprocess.Popen[str]]:
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    command = [sys.executable, "-m", "tools.lanes", *names]
    with subprocess.Popen(
        command, cwd=checkout, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as run:
        try:
            yield run
        finally:
            run.terminate()


def test_lanes_that_ran_are_shown_with_their_times_and_the_sum(checkout: Path) -> None:
    with lanes(checkout, "fails", "works") as run:
        output, _none = run.communicate(timeout=60)
    assert run.returncode == 1
    assert "some output" in output
    rows = [line.split() for line in output.splitlines() if line.endswith("CPU s")]
    assert rows[:2] == [["fails", "5", "s", "7", "CPU", "s"], ["works", "3", "s", "4", "CPU", "s"]]
    assert rows[2][0] == "all" and rows[2][3] == "11"


@pytest.mark.parametrize(
    ("lane", "number"), [("stubborn", signal.SIGINT), ("daemon", signal.SIGTERM), ("daemon", signal.SIGHUP)]
)
def test_signal_ends_every_process_of_the_lanes(checkout: Path, lane: str, number: signal.Signals) -> None:
    with lanes(checkout, lane, "works") as run:
        wait_until((checkout / "daemon.pid").exists)
        daemon = psutil.Process(int((checkout / "daemon.pid").read_text()))
        run.send_signal(number)
        assert run.wait(60) == 130
        assert not daemon.is_running()


def test_second_run_in_a_checkout_names_the_first_and_ends(checkout: Path) -> None:
    with lanes(checkout, "daemon") as first:
        wait_until((checkout / "daemon.pid").exists)
        with lanes(checkout, "works") as second:
            output, _none = second.communicate(timeout=60)
        assert second.returncode == 75
        assert f"process {first.pid} " in output
        assert first.poll() is None


def test_makefile_has_the_lanes_that_need_root() -> None:
    text = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    assert all(f"\n{lane}_SESSIONS := " in text for lane in NEED_ROOT)
