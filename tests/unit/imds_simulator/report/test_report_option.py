# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The option ``--report``: it writes at the end of every run, and files that cannot be written lose nothing."""

from __future__ import annotations

import resource
import signal
import subprocess
import sys

import pytest

from support import simulator_process
from support.simulator.report_page import ReportPage

# bytes; a report is longer, the scenario is not
SMALL_DISK = 4096


def simulate(*arguments, command=(), **options):
    line = [sys.executable, "-m", "imds_simulator", *(["exec"] if command else [])]
    addresses = ["--listen", "127.0.0.1:0", "--control", "127.0.0.1:0"]
    return subprocess.run(
        [*line, *addresses, *map(str, arguments), *(["--", *map(str, command)] if command else [])],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        stdin=subprocess.DEVNULL,
        **{"env": simulator_process.environment(), **options},
    )


def fill_disk_early():
    resource.setrlimit(resource.RLIMIT_FSIZE, (SMALL_DISK, SMALL_DISK))


@pytest.mark.parametrize(("command", "code"), [(["true"], 0), (["sh", "-c", "exit 3"], 3), (["/missing"], 127)])
def test_exec_writes_a_report_also_after_a_failed_command(tmp_path, command, code):
    file = tmp_path / "run.html"
    done = simulate("--vm", "solo", "--report", file, command=command)
    assert done.returncode == code
    assert done.stderr.count(f"report {file}\n") == 1
    assert ReportPage.of(file).data["events"] == []


def test_serving_writes_a_report_on_sigterm(start_process, tmp_path):
    file = tmp_path / "run.html"
    sim = start_process("user-reboot", args=["--clock", "manual", "--report", str(file)])
    sim.advance(100)
    assert not file.exists()
    assert sim.stop(signal.SIGTERM) == 0
    assert [each["type"] for each in ReportPage.of(file).data["events"]] == ["Reboot"]


def test_exec_writes_a_report_after_sigterm(tmp_path):
    file = tmp_path / "run.html"
    command = ["sh", "-c", 'kill -TERM "$PPID"; exec sleep 60']
    done = simulate("--report", file, command=command)
    assert done.returncode == 128 + signal.SIGTERM
    assert ReportPage.of(file).data["vms"]


@pytest.mark.parametrize("file", ["missing/run.html", "file/run.html", "folder"])
def test_unwritable_report_is_refused_before_the_run(tmp_path, file):
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    done = simulate("--report", tmp_path / file, command=["touch", tmp_path / "ran"])
    assert done.returncode == 2
    assert str(tmp_path / file) in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(("status", "code"), [(0, 2), (3, 3)])
def test_report_that_cannot_be_written_later_is_kept_elsewhere(tmp_path, status, code):
    folder, temporary = tmp_path / "folder", tmp_path / "temporary"
    folder.mkdir()
    temporary.mkdir()
    done = simulate(
        "--report",
        folder / "run.html",
        command=["sh", "-c", f"rmdir {folder}; exit {status}"],
        env={**simulator_process.environment(), "TMPDIR": str(temporary)},
    )
    assert done.returncode == code
    (kept,) = temporary.glob("*.html")
    assert f"the report is in {kept}" in done.stderr
    assert ReportPage.of(kept).data["events"] == []


def test_full_disk_keeps_the_earlier_report(tmp_path):
    file = tmp_path / "run.html"
    file.write_text("an earlier one")
    done = simulate(
        "--report",
        file,
        command=["true"],
        preexec_fn=fill_disk_early,
        env={**simulator_process.environment(), "TMPDIR": str(tmp_path)},
    )
    assert done.returncode == 2
    assert "the report is lost" in done.stderr
    assert "Traceback" not in done.stderr
    assert file.read_text() == "an earlier one"
    assert [path.name for path in tmp_path.iterdir()] == ["run.html"]


def test_report_verb_on_a_full_disk_keeps_the_earlier_report(start_simulator, tmp_path):
    file = tmp_path / "run.html"
    file.write_text("an earlier one")
    sim = start_simulator(args=["--clock", "manual"])
    line = [sys.executable, "-m", "imds_simulator", "report", "--control", sim.control, "--output", str(file)]
    options = {"capture_output": True, "text": True, "timeout": 60}
    environment = simulator_process.environment()
    done = subprocess.run(line, preexec_fn=fill_disk_early, env=environment, check=False, **options)
    assert (done.returncode, done.stdout) == (2, "")
    assert str(file) in done.stderr
    assert [path.read_text() for path in tmp_path.iterdir()] == ["an earlier one"]
    done = subprocess.run(line, env=environment, check=False, **options)
    assert done.returncode == 0
    assert ReportPage.of(file).data["events"] == []


def test_report_replaces_the_target_of_a_symbolic_link(start_process, tmp_path):
    real = tmp_path / "real.html"
    (tmp_path / "link.html").symlink_to(real)
    sim = start_process(args=["--report", str(tmp_path / "link.html")])
    sim.stop()
    assert (tmp_path / "link.html").is_symlink()
    assert ReportPage.of(real).data["vms"]
