# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The report of a run: the page with the data of the run, and with nothing that runs or loads anything else."""

from __future__ import annotations

import base64
import hashlib
import json

import pytest

from imds_simulator.__main__ import main
from imds_simulator.report.page import report
from support import simulator_process
from support.salt.http_server import HttpServer, QuietHandler
from support.simulator.raw_http import send_request
from support.simulator.report_page import ReportPage

EVIL = "</script><script>alert(1)</script><!--<script \"'&amp;]]>\u2028\u202e\x1b[31m\x00"


def hash_of(text: str) -> str:
    return "'sha256-%s'" % base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def test_report_has_the_data_of_the_run(start_simulator, tmp_path):
    sim = start_simulator({"groups": {"web": {"vms": {"vm1": {}, "vm2": {}}}}}, args=["--clock", "manual"])
    send_request(sim.endpoints["vm1"])
    sim.post("/events", {"type": "Freeze", "resources": ["vm1"], "name": "patch"})
    sim.post("/faults", {"kind": "unavailable", "vm": "vm2"})
    for vm in ("vm1", "vm2"):
        send_request(sim.endpoints[vm])
    sim.post("/notes", {"vm": "vm1", "what": "prepared", "event": "patch"})
    sim.post("/events/patch/approve", {"as": "vm1"})
    sim.delete("/faults")
    sim.advance(60)
    file = tmp_path / "report.html"
    assert main(["report", "--control", sim.control, "--output", str(file)]) == 0
    page = ReportPage.of(file)
    assert page.data == sim.get("/state?after_line=0")
    assert page.steps("vm1") == ["seen", "prepared", "approved"]
    assert [each["status"] for each in page.data["events"]] == ["Started"]
    assert [(each["vm"], each["status"], each["count"]) for each in page.data["answers"]] == [
        ("vm1", 200, 2),
        ("vm2", 503, 1),
    ]
    (cleared,) = [line for line in page.data["lines"] if line["what"] == "faults-cleared"]
    assert [each["kind"] for each in cleared["faults"]] == ["unavailable"]


def test_hostile_texts_stay_data_and_only_the_own_script_runs():
    run = {"title": EVIL, "events": [{"name": EVIL, "description": EVIL}], "vms": {EVIL: {}}}
    page = ReportPage(report(run))
    assert page.data == run
    (script,), (style,) = page.scripts, page.styles
    assert [attributes for tag, attributes in page.elements if tag == "script"] == [
        {"type": "application/json", "id": "data"},
        {},
    ]
    (policy,) = [attributes["content"] for _tag, attributes in page.elements if "http-equiv" in attributes]
    assert policy == f"default-src 'none'; style-src {hash_of(style)}; script-src {hash_of(script)}; base-uri 'none'"
    for _tag, attributes in page.elements:
        assert not any(key.startswith("on") or key == "src" for key in attributes)
        assert attributes.get("href") in (None, "#events")


def test_report_verb_without_a_simulator_fails_and_keeps_the_file(tmp_path, capsys):
    file = tmp_path / "report.html"
    file.write_text("an earlier one")
    with simulator_process.reserved_port() as port:
        assert main(["report", "--control", f"127.0.0.1:{port}", "--output", str(file)]) == 1
    assert "check --control" in capsys.readouterr().err
    assert file.read_text() == "an earlier one"


@pytest.mark.parametrize("answer", [["not", "a", "state"], {"vms": {}}, {"title": "one", "vms": {}, "events": []}])
def test_answers_of_another_program_are_refused(tmp_path, capsys, answer):
    class Handler(QuietHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(answer).encode())

    file = tmp_path / "report.html"
    with HttpServer(Handler) as server:
        assert main(["report", "--control", server.address, "--output", str(file)]) == 1
    assert "check --control" in capsys.readouterr().err
    assert not file.exists()
