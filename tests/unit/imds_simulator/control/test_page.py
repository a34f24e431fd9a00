# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The live page, the data that it polls, and the commands and the hook of docs/simulator/live-page.md as printed."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from imds_simulator.control.state import MAX_NEW, equal_answers, run_data
from imds_simulator.scenario.files import default_scenario
from imds_simulator.server import activity_log
from imds_simulator.server.activity_log import RequestEntry
from imds_simulator.server.clock import ManualClock
from imds_simulator.server.engine import Engine
from support import simulator_process
from support.repository import REPOSITORY
from support.simulator.raw_http import send_request
from support.simulator.report_page import ReportPage

BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}


@pytest.mark.parametrize(
    "accept, kind",
    [
        (BROWSER["Accept"], "text/html"),
        ("text/html", "text/html"),
        ("*/*", "application/json"),
        ("application/json", "application/json"),
        ("application/json, text/html;q=0.5", "application/json"),
        ("text/html;q=0", "application/json"),
    ],
)
def test_root_is_the_page_for_browsers_and_json_for_others(sim, accept, kind):
    answer = send_request(sim.control, "/", headers={"Accept": accept})
    assert (answer.status, answer.headers.get_content_type()) == (200, kind)


def test_page_loads_only_its_own_files_and_has_no_inline_code(sim):
    page = send_request(sim.control, "/", headers=BROWSER)
    policy = page.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy and "frame-ancestors 'none'" in policy
    assert page.headers["X-Content-Type-Options"] == "nosniff"
    text = page.body.decode()
    assert sorted(re.findall(r'(?:src|href)="([^"#]+)"', text)) == ["/page.css", "/page.js"]
    assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?! src=)|https?://", text)
    for path, kind in (("/page.css", "text/css"), ("/page.js", "text/javascript")):
        file = send_request(sim.control, path)
        assert (file.status, file.headers.get_content_type()) == (200, kind)
        body = file.body.replace(b"http://www.w3.org/2000/svg", b"")
        assert not re.search(rb"https?://|innerHTML|insertAdjacentHTML|document\.write|\beval\b", body)


def test_state_after_numbers_has_only_the_new_log(sim):
    sim.post("/notes", {"vm": "vm1", "what": "before"})
    # the first request of a group adds a line
    send_request(sim.endpoints["vm2"])
    first = sim.get("/state?after_line=0&after_request=0")
    assert "lines" not in sim.get("/state")
    send_request(sim.endpoints["vm2"])
    sim.post("/notes", {"vm": "vm1", "what": "x" * 200})
    after = f"/state?after_line={first['last_line']}&after_request={first['last_request']}"
    second = sim.get(after)
    assert second["run"] == first["run"]
    assert [line["note"] for line in second["lines"]] == ["x" * 200]
    (answer,) = second["answers"]
    assert (answer["vm"], answer["method"], answer["route"], answer["status"]) == ("vm2", "GET", "scheduledevents", 200)
    third = sim.get(f"/state?after_line={second['last_line']}&after_request={second['last_request']}")
    assert third["lines"] == third["answers"] == []
    assert third["last_line"] == second["last_line"] and third["last_request"] == second["last_request"]


def test_equal_answers_in_a_row_are_one_group():
    def request(number, vm, status, route="scheduledevents"):
        return RequestEntry(number, float(number), vm, "GET", route, "", status, "", "")

    statuses = [("a", 200), ("b", 200), ("a", 200), ("a", 503), ("b", 200), ("a", 503), ("a", 200)]
    requests = [request(number, *each) for number, each in enumerate(statuses)]
    # another route does not end a group
    requests.insert(1, request(99, "a", 404, "instance"))
    groups = [(each["vm"], each["status"], each["count"], each["from"], each["to"]) for each in equal_answers(requests)]
    assert groups == [
        ("a", 200, 2, 0, 2),
        ("a", 404, 1, 99, 99),
        ("b", 200, 2, 1, 4),
        ("a", 503, 2, 3, 5),
        ("a", 200, 1, 6, 6),
    ]


def test_answer_to_the_page_is_bounded():
    engine = Engine(default_scenario(), ManualClock(0), lambda _line: None)
    log = engine.activity_log
    for number in range(MAX_NEW + 10):
        log.add_line(0.0, "note", vm="vm1", note="y" * 1000)
        log.add_request(0.0, "vm1", "GET", "scheduledevents", "", 200 + number % 2, "", "")
    data = run_data(engine, {"vm1": "", "vm2": ""})
    assert len(data["lines"]) == len(data["answers"]) == MAX_NEW
    assert data["last_line"] == data["lines"][-1]["number"] and {len(line["note"]) for line in data["lines"]} == {300}


def test_kinds_of_faults_have_the_groups_of_the_page(sim):
    kinds = sim.get("/fault-kinds")
    groups = {kinds[name]["group"]: name for name in kinds}
    assert list(groups) == ["answers", "bodies", "connection", "time"]
    named = {"unavailable": "answers", "html": "bodies", "cut-json": "bodies", "refuse": "connection", "delay": "time"}
    assert {name: kinds[name]["group"] for name in named} == named


# -- docs/simulator/live-page.md

TEXT = (REPOSITORY / "docs" / "simulator" / "live-page.md").read_text(encoding="utf-8")
TOKEN = "a-token-of-tests"
START, SERVE_WITH_TOKEN, CLIENTS, NOTES = re.findall(r"```bash\n(.*?)```", TEXT, re.DOTALL)
EXEC, REPORT = re.findall(r"^\$ (.*)", TEXT, re.MULTILINE)
(HOOK,) = re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL)


@pytest.fixture
def simulator(start_simulator):
    sim = start_simulator("live-migration")
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


def test_clients_of_the_page_send_the_token_as_printed(start_process, run_printed):
    lines = CLIENTS.splitlines()
    assert len(lines) == 2
    control = start_process(token=TOKEN).control.partition("://")[2]
    for line in lines:
        assert b'"vms"' in run_printed(line.replace("127.0.0.1:8168", control), IMDS_SIMULATOR_CONTROL_TOKEN=TOKEN)


def test_commands_write_the_report_and_the_notes(simulator, run_printed, tmp_path):
    for line in [*NOTES.splitlines(), REPORT]:
        run_printed(line, IMDS_SIMULATOR_CONTROL=simulator.control)
    page = ReportPage.of(tmp_path / "run.html")
    assert page.steps("vm1") == ["prepared", "recovered"]
    assert page.steps("vm2") == ["the load balancer has drained"]


def test_command_with_exec_writes_the_report(run_printed, tmp_path):
    (tmp_path / "rehearse.sh").write_text("#!/bin/sh\n")
    (tmp_path / "rehearse.sh").chmod(0o755)
    run_printed(EXEC, IMDS_SIMULATOR_LISTEN="127.0.0.1:0", IMDS_SIMULATOR_CONTROL="127.0.0.1:0")
    assert "live migration" in ReportPage.of(tmp_path / "run.html").data["title"]


@pytest.mark.skipif(shutil.which("curl") is None, reason="the hook uses curl")
def test_hook_sends_notes_and_never_fails(simulator, run_printed):
    event_id = simulator.get("/events/migration")["id"]
    event = {"EVENT_RESOURCE": "vm2", "EVENT_ID": event_id, "IMDS_SIMULATOR_CONTROL": simulator.control}
    for stage in ("prepare", "started", "recover"):
        run_printed(HOOK, EVENT_STAGE=stage, **event)
    lines = simulator.get("/log?what=note")["lines"]
    assert [(each["vm"], each["note"], each["event"]) for each in lines] == [
        ("vm2", "prepared", "migration"),
        ("vm2", "recovered", "migration"),
    ]
    with simulator_process.reserved_port() as port:
        for control in (f"http://127.0.0.1:{port}", ""):
            run_printed(HOOK, EVENT_STAGE="prepare", **{**event, "IMDS_SIMULATOR_CONTROL": control})


def test_control_api_states_the_limits_of_the_code():
    kept = (activity_log.MAX_LINES, activity_log.MAX_SEEN, activity_log.MAX_REQUESTS)
    control_api = (REPOSITORY / "docs" / "simulator.md").read_text(encoding="utf-8").partition("\n## Control API\n")[2]
    assert [f"{number:,}" for number in kept] == re.findall(r"last\s+([\d,]+)", control_api)[:3]
    assert f"{MAX_NEW:,}" in TEXT
