# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The commands and the hook of docs/simulator/live-page.md, as printed except for the ports."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys

import pytest

from imds_simulator.server import activity_log
from support import simulator_process
from support.repository import REPOSITORY
from support.simulator.in_thread import start_in_thread
from support.simulator.raw_http import send_request
from support.simulator.report_page import ReportPage

TEXT = (REPOSITORY / "docs" / "simulator" / "live-page.md").read_text(encoding="utf-8")
TOKEN = "a-token-of-tests"
START, SERVE_WITH_TOKEN, CLIENTS, NOTES = re.findall(r"```bash\n(.*?)```", TEXT, re.DOTALL)
EXEC, REPORT = re.findall(r"^\$ (.*)", TEXT, re.MULTILINE)
(HOOK,) = re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL)


@pytest.fixture
def variables(tmp_path):
    """Return environment variables with which python3 is the Python of the tests."""
    python = tmp_path / "bin" / "python3"
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    found = simulator_process.environment()
    return {**found, "PATH": f"{python.parent}{os.pathsep}{found['PATH']}"}


@pytest.fixture
def run(tmp_path, variables):
    def run_script(script, **more):
        done = subprocess.run(
            ["bash", "-ec", script],
            cwd=tmp_path,
            env={**variables, **more},
            capture_output=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, f"{script}: {done.stderr.decode()}"
        return done.stdout

    return run_script


@pytest.fixture
def simulator(start_simulator):
    sim = start_simulator("live-migration", args=["--clock", "manual"])
    sim.advance(10)
    return sim


@pytest.mark.parametrize("script", [START, SERVE_WITH_TOKEN])
def test_servers_of_the_page_start_as_printed(script, variables):
    *exports, command = script.replace("0.0.0.0:8168", "127.0.0.1:0").splitlines()
    command += " --listen 127.0.0.1:0 --quiet" + ("" if "--control" in command else " --control 127.0.0.1:0")
    script = "\n".join([*exports, f"exec {command}"])
    with subprocess.Popen(
        ["bash", "-ec", script], cwd=REPOSITORY, env=variables, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            control = next(line.split()[1] for line in process.stdout if line.startswith("control "))
            page = send_request(control, "/", headers={"Accept": "text/html"})
            assert page.status == 200 and b'id="timeline"' in page.body
            assert send_request(control, "/state").status == (401 if "TOKEN" in script else 200)
        finally:
            process.terminate()


def test_clients_of_the_page_send_the_token_as_printed(run):
    lines = CLIENTS.splitlines()
    assert len(lines) == 2
    with start_in_thread(token=TOKEN) as simulator:
        for line in lines:
            client = line.replace("127.0.0.1:8168", simulator.control.partition("://")[2])
            assert b'"vms"' in run(client, IMDS_SIMULATOR_CONTROL_TOKEN=TOKEN)


def test_commands_write_the_report_and_the_notes(simulator, run, tmp_path):
    for line in [*NOTES.splitlines(), REPORT]:
        run(line, IMDS_SIMULATOR_CONTROL=simulator.control)
    page = ReportPage.of(tmp_path / "run.html")
    assert page.steps("vm1") == ["prepared", "recovered"]
    assert page.steps("vm2") == ["the load balancer has drained"]


def test_command_with_exec_writes_the_report(run, tmp_path):
    (tmp_path / "rehearse.sh").write_text("#!/bin/sh\n")
    (tmp_path / "rehearse.sh").chmod(0o755)
    run(EXEC, IMDS_SIMULATOR_LISTEN="127.0.0.1:0", IMDS_SIMULATOR_CONTROL="127.0.0.1:0")
    assert "live migration" in ReportPage.of(tmp_path / "run.html").data["title"]


@pytest.mark.skipif(shutil.which("curl") is None, reason="the hook uses curl")
def test_hook_sends_notes_and_never_fails(simulator, run):
    event_id = simulator.get("/events/migration")["id"]
    event = {"EVENT_RESOURCE": "vm2", "EVENT_ID": event_id, "IMDS_SIMULATOR_CONTROL": simulator.control}
    for stage in ("prepare", "started", "recover"):
        run(HOOK, EVENT_STAGE=stage, **event)
    lines = simulator.get("/log?what=note")["lines"]
    assert [(each["vm"], each["note"], each["event"]) for each in lines] == [
        ("vm2", "prepared", "migration"),
        ("vm2", "recovered", "migration"),
    ]
    simulator.stop()
    run(HOOK, EVENT_STAGE="prepare", **event)
    run(HOOK, EVENT_STAGE="prepare", **{**event, "IMDS_SIMULATOR_CONTROL": ""})


def test_page_states_the_limits_of_the_code():
    kept = (activity_log.MAX_LINES, activity_log.MAX_SEEN, activity_log.MAX_REQUESTS)
    assert [f"{number:,}" for number in kept] == re.findall(r"last\s+([\d,]+)", TEXT)[:3]
