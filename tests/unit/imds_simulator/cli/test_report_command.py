# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The report of a run: its data, nothing that runs or loads anything else, and files that cannot be written."""

from __future__ import annotations

import base64
import hashlib
import resource
import signal
from functools import partial

import pytest

from imds_simulator.control.page.report import report
from support import simulator_process
from support.simulator.raw_http import send_request
from support.simulator.report_page import ReportPage

# bytes; a report is longer, the scenario is not
SMALL_DISK = 4096
EVIL = "</script><script>alert(1)</script><!--<script \"'&amp;]]>\u2028\u202e\x1b[31m\x00"


def hash_of(text: str) -> str:
    return "'sha256-%s'" % base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def test_report_has_the_data_of_the_run(start_pair, call, tmp_path):
    sim = start_pair()
    sim.post("/events", {"type": "Freeze", "resources": ["vm1"], "name": "patch"})
    sim.post("/faults", {"kind": "unavailable", "vm": "vm2"})
    for vm in ("vm1", "vm2"):
        send_request(sim.endpoints[vm])
    sim.post("/notes", {"vm": "vm1", "what": "prepared", "event": "patch"})
    sim.post("/events/patch/approve", {"as": "vm1"})
    file = tmp_path / "report.html"
    assert call("report", "--control", sim.control, "--output", file).code == 0
    page = ReportPage.of(file)
    assert page.data == sim.get("/state?after_line=0")
    assert page.steps("vm1") == ["seen", "prepared", "approved"]


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


def test_report_verb_without_a_simulator_fails_and_keeps_the_file(call, tmp_path):
    file = tmp_path / "report.html"
    file.write_text("an earlier one")
    with simulator_process.reserved_port() as port:
        done = call("report", "--control", f"127.0.0.1:{port}", "--output", file)
    assert done.code == 1 and "check --control" in done.err
    assert file.read_text() == "an earlier one"


# -- the option --report, which writes at the end of every run


def execute(report, command, **options):
    return simulator_process.run("exec", "--report", report, "--", *command, **options)


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (["true"], 0),
        (["sh", "-c", "exit 3"], 3),
        (["/missing"], 127),
        (["sh", "-c", 'kill -TERM "$PPID"; exec sleep 60'], 128 + signal.SIGTERM),
    ],
    ids=["success", "failure", "missing", "terminated"],
)
def test_exec_writes_a_report_however_its_command_ends(tmp_path, command, code):
    file = tmp_path / "run.html"
    done = execute(file, command)
    assert done.returncode == code
    assert done.stderr.count(f"report {file}\n") == 1
    assert ReportPage.of(file).data["events"] == []


@pytest.mark.parametrize("file", ["missing/run.html", "file/run.html", "folder"])
def test_unwritable_report_is_refused_before_the_run(tmp_path, file):
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    done = execute(tmp_path / file, ["touch", tmp_path / "ran"])
    assert done.returncode == 2
    assert str(tmp_path / file) in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(("status", "code"), [(0, 2), (3, 3)])
def test_report_that_cannot_be_written_later_is_kept_elsewhere(tmp_path, status, code):
    folder, temporary = tmp_path / "folder", tmp_path / "temporary"
    folder.mkdir()
    temporary.mkdir()
    variables = {**simulator_process.environment(), "TMPDIR": str(temporary)}
    done = execute(folder / "run.html", ["sh", "-c", f"rmdir {folder}; exit {status}"], env=variables)
    assert done.returncode == code
    (kept,) = temporary.glob("*.html")
    assert f"the report is in {kept}" in done.stderr
    assert ReportPage.of(kept).data["events"] == []


def test_full_disk_keeps_the_earlier_report(tmp_path):
    file = tmp_path / "run.html"
    file.write_text("an earlier one")
    variables = {**simulator_process.environment(), "TMPDIR": str(tmp_path)}
    small = (SMALL_DISK, SMALL_DISK)
    limit = partial(resource.setrlimit, resource.RLIMIT_FSIZE, small)
    done = execute(file, ["true"], preexec_fn=limit, env=variables)
    assert done.returncode == 2
    assert "the report is lost" in done.stderr
    assert "Traceback" not in done.stderr
    assert file.read_text() == "an earlier one"
    assert [path.name for path in tmp_path.iterdir()] == ["run.html"]


def test_report_can_have_the_longest_name_of_the_file_system(tmp_path):
    # 255 bytes
    file = tmp_path / ("\u5831" * 80 + "longer.report.x")
    done = execute(file, ["true"])
    assert (done.returncode, [path.name for path in tmp_path.iterdir()]) == (0, [file.name])


def test_report_verb_replaces_the_target_of_a_symbolic_link(start_simulator, call, tmp_path):
    real, link = tmp_path / "real.html", tmp_path / "link.html"
    link.symlink_to(real)
    command = ["report", "--control", start_simulator().control, "--output"]
    refused = call(*command, tmp_path / "missing" / "run.html")
    assert refused.code == 2 and "missing" in refused.err
    assert call(*command, link).code == 0
    assert link.is_symlink() and ReportPage.of(real).data["vms"]
