# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The commands and the hook of docs/simulator/report.md, as printed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from imds_simulator.report import selection
from imds_simulator.server import activity_log
from support import simulator_process
from support.repository import REPOSITORY
from support.simulator.report_page import ReportPage

TEXT = (REPOSITORY / "docs" / "simulator" / "report.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)


def run(line, folder, **variables):
    # python3 of the page is the Python of the tests
    python = folder / "bin" / "python3"
    python.parent.mkdir(exist_ok=True)
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    environment = {**simulator_process.environment(), **variables}
    environment["PATH"] = f"{folder / 'bin'}{os.pathsep}{environment['PATH']}"
    done = subprocess.run(
        ["sh", "-c", line], cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, f"{line}: {done.stderr}"


@pytest.fixture
def simulator(start_simulator):
    sim = start_simulator("live-migration", args=["--clock", "manual"])
    sim.advance(10)
    return sim


def test_commands_write_the_report_and_the_notes(simulator, tmp_path):
    write, notes = blocks("bash")
    for line in [*notes.splitlines(), write]:
        run(line, tmp_path, IMDS_SIMULATOR_CONTROL=simulator.control)
    page = ReportPage.of(tmp_path / "run.html")
    assert [mark.kind for mark in page.marks("vm1")] == ["prepared", "recovered"]
    assert [mark.kind for mark in page.marks("vm2")] == ["note"]


def test_command_with_exec_writes_the_report(tmp_path):
    (line,) = re.findall(r"^\$ (.*)", "".join(blocks("console")), re.MULTILINE)
    (tmp_path / "rehearse.sh").write_text("#!/bin/sh\n")
    (tmp_path / "rehearse.sh").chmod(0o755)
    addresses = {"IMDS_SIMULATOR_LISTEN": "127.0.0.1:0", "IMDS_SIMULATOR_CONTROL": "127.0.0.1:0"}
    run(line, tmp_path, **addresses)
    assert "live migration" in ReportPage.of(tmp_path / "run.html").text


@pytest.mark.skipif(shutil.which("curl") is None, reason="the hook uses curl")
def test_hook_sends_notes_and_never_fails(simulator, tmp_path):
    (hook,) = blocks("sh")
    event_id = simulator.get("/events/migration")["id"]
    variables = {"EVENT_RESOURCE": "vm2", "EVENT_ID": event_id, "IMDS_SIMULATOR_CONTROL": simulator.control}
    for stage in ("prepare", "started", "recover"):
        run(hook, tmp_path, EVENT_STAGE=stage, **variables)
    lines = simulator.get("/log?what=note")["lines"]
    assert [(each["vm"], each["note"], each["event"]) for each in lines] == [
        ("vm2", "prepared", "migration"),
        ("vm2", "recovered", "migration"),
    ]
    simulator.stop()
    run(hook, tmp_path, EVENT_STAGE="prepare", **variables)
    run(hook, tmp_path, EVENT_STAGE="prepare", **{**variables, "IMDS_SIMULATOR_CONTROL": ""})


def test_page_states_the_limits_of_the_code():
    numbers = (selection.MAX_VMS, selection.MAX_EVENTS, selection.MAX_FAULTS, selection.MAX_FACTS)
    assert "at most %d VMs, %d events, %d faults and %s steps" % (*numbers[:3], f"{numbers[3]:,}") in TEXT
    kept = (activity_log.MAX_LINES, activity_log.MAX_SEEN, activity_log.MAX_REQUESTS)
    assert [f"{number:,}" for number in kept] == re.findall(r"last\s+([\d,]+)", TEXT)[:3]
    assert Path(REPOSITORY / "docs" / "simulator.md").read_text(encoding="utf-8").count("(simulator/report.md)") >= 1
