# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Lanes of checks and tests end with every process that they started, and only one run works in a checkout."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
import yaml

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


# a shell starts what it runs in the background with SIGINT ignored, nohup with SIGHUP
HEEDED = "for number in lanes.ENDING: lanes.signal.signal(number, lanes.signal.SIG_DFL)"
# what the tests change in the module
QUICK = "lanes.GRACE = 2.0"
NOT_ROOT = "lanes.os.geteuid = lambda: 1000"


@contextmanager
def lanes(checkout: Path, *names: str, change: str = QUICK) -> Iterator[subprocess.Popen[str]]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (REPOSITORY, REPOSITORY / "tests")))}
    program = f"import sys\nfrom tools import lanes\n{HEEDED}\n{change}\nsys.exit(lanes.main('3', *sys.argv[1:]))"
    command = [sys.executable, "-c", program, *names]
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
        started = psutil.Process(run.pid).children(recursive=True)
        run.send_signal(number)
        assert run.wait(60) == 130
        # make, the shell of the lane and its sleep, and the daemon
        assert len(started) >= 3
        assert [process for process in started if process.is_running()] == []


def test_second_run_in_a_checkout_names_the_first_and_ends(checkout: Path) -> None:
    with lanes(checkout, "daemon") as first:
        wait_until((checkout / "daemon.pid").exists)
        with lanes(checkout, "works") as second:
            output, _none = second.communicate(timeout=60)
        assert second.returncode == 75
        assert f"process {first.pid} " in output
        assert first.poll() is None


def test_lanes_that_need_root_are_named_and_left_out_without_root(checkout: Path) -> None:
    with lanes(checkout, "works", *NEED_ROOT, change=NOT_ROOT) as run:
        output, _none = run.communicate(timeout=60)
    assert run.returncode == 0
    assert output.splitlines()[-1] == "left out, because only root can run them: labs, ready-hooks, salt, system"


def variable_of_makefile(name: str) -> list[str]:
    show = ["make", "--eval", f"show: ; @echo $({name})", "show"]
    ran = subprocess.run(show, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    return shlex.split(ran.stdout)


def test_workflow_runs_every_lane_and_every_lane_has_sessions_that_exist() -> None:
    wanted = [each for kind in ("ALL_LANES", "ON_REQUEST") for each in variable_of_makefile(kind)]
    assert set(variable_of_makefile("LANES")) < set(wanted)
    workflow = yaml.safe_load((REPOSITORY / ".github" / "workflows" / "test.yml").read_text(encoding="utf-8"))
    assert set(workflow["jobs"]["all"]["strategy"]["matrix"]["lane"]) == set(wanted)
    assert set(NEED_ROOT) < set(wanted)
    nox = [str(Path(sys.executable).with_name("nox")), "--list"]
    listed = subprocess.run(nox, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    sessions = set(re.findall(r"^[*-] (\S+)", listed.stdout, re.MULTILINE))
    for lane in wanted:
        named = variable_of_makefile(f"{lane}_SESSIONS")
        assert named and set(named) <= sessions
