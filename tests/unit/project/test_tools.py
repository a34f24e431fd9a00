# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The runner of the tests."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
import yaml

from support.repository import REPOSITORY
from tools.interpreters import Interpreter, clean_path, find_interpreters, real_interpreter
from tools.junit import read_junit
from tools.repository.collection_tree import INSIDE, copy_tree
from tools.run import EVERY, chosen
from tools.runner import Report, show_summary
from tools.stage import Outcome, Skip, Stage
from tools.stages.ansible_test import counted, failures_in, sanity_outcome
from tools.windows_python.release import Chosen, Release, choose

# a stage that starts a daemon in a session of its own, which ignores SIGTERM, and further stages
STAGES = """
import sys
from functools import partial
from pathlib import Path
from tools.environment import Environment
from tools.process_reaper import run_and_reap
from tools.run import run
from tools.stage import Outcome, Stage

folder = Path(sys.argv[1])
environment = Environment(folder, (), {"PATH": "/usr/bin:/bin"})
DAEMON = (
    "trap '' TERM; setsid --fork sh -c 'echo $$ > daemon; exec sleep 600'; echo $$ > started;"
    "while :; do sleep 1; done"
)

def first(job):
    return Outcome.from_exit_status(job.run("sh", "-c", DAEMON))

def second(job):
    (folder / "second").touch()
    return Outcome(passed=1)

sys.exit(run_and_reap(partial(run, environment, [Stage("first", "", first), Stage("second", "", second)], 1)))
"""

THIS_MINOR = sys.version_info.minor


def repository(folder: Path, **files: str) -> Path:
    subprocess.run(["git", "init", "--quiet", folder], check=True)
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder


def test_copy_follows_the_repository(tmp_path: Path) -> None:
    source = repository(tmp_path / "source", stays="1", goes="2")
    (source / "link").symlink_to("stays")
    (source / ".gitignore").write_text("ignored\n")
    (source / "ignored").write_text("3")
    copy = copy_tree(source, tmp_path / "copy")
    assert copy == tmp_path / "copy" / INSIDE
    assert sorted(file.name for file in copy.iterdir()) == [".git", ".gitignore", "goes", "link", "stays"]
    assert os.readlink(copy / "link") == "stays"

    (source / "goes").unlink()
    (source / "stays").write_text("changed")
    copy_tree(source, tmp_path / "copy")
    assert sorted(file.name for file in copy.iterdir()) == [".git", ".gitignore", "link", "stays"]
    assert (copy / "stays").read_text() == "changed"


def test_copy_keeps_what_ansible_test_stored(tmp_path: Path) -> None:
    source = repository(tmp_path / "source", file="1")
    kept = tmp_path / "copy" / INSIDE / "tests" / "output" / "venv" / "python"
    kept.parent.mkdir(parents=True)
    kept.touch()
    copy_tree(source, tmp_path / "copy")
    assert kept.exists()


def test_shim_of_a_version_that_is_not_selected_is_no_interpreter(tmp_path: Path) -> None:
    shim = tmp_path / f"python3.{THIS_MINOR}"
    shim.write_text("#!/bin/sh\nexit 127\n")
    shim.chmod(0o755)
    assert real_interpreter(shim, THIS_MINOR) is None


def test_interpreter_of_another_version_than_its_name_is_none(tmp_path: Path) -> None:
    imposter = tmp_path / f"python3.{THIS_MINOR - 1}"
    imposter.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    imposter.chmod(0o755)
    assert real_interpreter(imposter, THIS_MINOR - 1) is None


def test_path_has_the_interpreters_first_and_no_shims(tmp_path: Path) -> None:
    found = find_interpreters(str(Path(sys.base_prefix, "bin")), tmp_path)
    assert THIS_MINOR in {interpreter.minor for interpreter in found}
    path = clean_path("/opt/manager/shims:/usr/bin", found).split(os.pathsep)
    assert path[-1] == "/usr/bin"
    assert "/opt/manager/shims" not in path
    assert str(found[0].path.parent) == path[0]


def test_sanity_counts_tests_and_names_what_was_absent() -> None:
    output = """Running sanity test "compile" on Python 3.8
WARNING: Skipping sanity test 'compile' on Python 3.14 because it could not be found.
Running sanity test "pep8"
FATAL: The 1 sanity test(s) listed below (out of 2) failed. See error output above for details.
"""
    assert sanity_outcome(1, output) == Outcome(1, 1, 1, ("Python 3.14: not on this machine",))


def test_integration_counts_targets() -> None:
    output = """Running event_info integration test role
Running runme integration test script
FATAL: The 1 integration test(s) listed below (out of 2) failed. See error output above for details:
"""
    assert counted(1, output, "integration") == Outcome(1, 1)


def test_a_failed_target_is_shown_with_the_task_that_failed() -> None:
    output = """TASK [event_info : Wait in vain] ***
fatal: [testhost]: FAILED! => {"msg": "expected"}
...ignoring

TASK [event_info : Read] ***
ok: [testhost]
failed: [testhost] (item=1) => {"msg": "refused"}

PLAY RECAP ***
FATAL: The 2 integration test(s) listed below (out of 2) failed. See error output above for details:
event_info
runme
"""
    assert list(failures_in(output, "integration")) == [
        'event_info: Read: [testhost] (item=1) => {"msg": "refused"}',
        "runme",
    ]


def test_a_failed_check_is_shown_with_its_first_issue() -> None:
    output = """ERROR: Found 2 pep8 issue(s) which need to be resolved:
ERROR: a.py:1:2: E301: expected 1 blank line
ERROR: b.py:1:2: E301: expected 1 blank line
FATAL: The 1 sanity test(s) listed below (out of 2) failed. See error output above for details.
pep8
"""
    assert list(failures_in(output, "sanity")) == ["pep8: a.py:1:2: E301: expected 1 blank line"]


def test_sanity_that_ran_nothing_has_failed() -> None:
    assert sanity_outcome(0, "WARNING: All targets skipped.\n").failed == 1


def test_command_that_dies_without_a_result_has_failed(tmp_path: Path) -> None:
    assert read_junit(tmp_path / "none.xml", 1) == Outcome(failed=1)


def test_junit_counts_and_reasons(tmp_path: Path) -> None:
    file = tmp_path / "result.xml"
    file.write_text(
        '<testsuites><testsuite tests="3" failures="1" errors="0" skipped="1">'
        '<testcase name="a"><skipped message="needs root"/></testcase></testsuite></testsuites>'
    )
    assert read_junit(file, 1) == Outcome(1, 1, 1, ("needs root",))


def test_junit_names_what_failed_and_the_first_line_of_why(tmp_path: Path) -> None:
    file = tmp_path / "result.xml"
    file.write_text(
        '<testsuite tests="2" failures="1" errors="1" skipped="0">'
        '<testcase classname="tests.scenarios.test_life" name="test_a[1]">'
        '<failure message="message:&#10;much&#10;assert 1 == 2&#10; +  where">long</failure></testcase>'
        '<testcase classname="tests.scenarios.test_life" name="test_b">'
        "<error>\nno such fixture\nmore</error></testcase></testsuite>"
    )
    assert read_junit(file, 1).failures == (
        "test_life::test_a[1]: message: assert 1 == 2",
        "test_life::test_b: no such fixture",
    )


def test_summary_names_the_first_failures_of_each_stage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "log"
    log.write_text("error: found\n\nFound 1 error in 2 files\n")

    def report(name: str, *failures: str) -> Report:
        return Report(
            Stage(name, "", lambda job: Outcome()), Outcome(3, max(1, len(failures)), 0, (), failures), 1.0, log
        )

    reports = [
        report("scenarios", *(f"test_life::test_{number}: {'x' * 500}" for number in range(20))),
        report("mypy"),
        report("unit", "one: a\nb"),
    ]
    assert show_summary(reports, 5) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "9 passed, 22 failed, 0 skipped"
    shown = lines[lines.index("5 s in all") + 2 : -1]
    assert shown[0].startswith("scenarios: test_life::test_0: xxx") and shown[1:3] == [
        "mypy: error: found",
        "unit: one: a b",
    ]
    assert len(shown) == 11 and max(map(len, shown)) <= 400 and shown[-1] == "and 13 more"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_ends_the_run_and_every_process_that_it_started(tmp_path: Path, number: int) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([sys.executable, "-c", STAGES, tmp_path], env=environment, start_new_session=True) as run:
        daemon, deadline = tmp_path / "daemon", time.monotonic() + 60
        while not (daemon.exists() and daemon.read_text().strip() and (tmp_path / "started").exists()):
            assert time.monotonic() < deadline and run.poll() is None
            time.sleep(0.05)
        started = [int((tmp_path / name).read_text()) for name in ("daemon", "started")]
        run.send_signal(number)
        assert run.wait(60) in (130, 128 + signal.SIGKILL)
    assert [pid for pid in started if psutil.pid_exists(pid)] == []
    assert not (tmp_path / "second").exists()


def interpreter(file: Path, version: str) -> Interpreter:
    """Return an interpreter that answers with a version and a folder of its standard library."""
    file.write_text(f"#!/bin/sh\necho {version} /lib of {version}\n")
    file.chmod(0o755)
    return Interpreter(int(version.split(".")[1]), file)


def test_windows_python_has_the_standard_library_of_its_own_release(tmp_path: Path) -> None:
    old, new = interpreter(tmp_path / "old", "3.11.9"), interpreter(tmp_path / "new", "3.12.1")
    assert choose([old, new]) == Chosen(Release("3.12.1", "1.10.14"), Path("/lib of 3.12.1"))
    with pytest.raises(Skip, match=r"exactly Python 3\.11\.7, .*; this machine has 3\.11\.9$"):
        choose([old])


def test_workflow_runs_every_stage_once() -> None:
    workflow = yaml.safe_load((REPOSITORY / ".github" / "workflows" / "test.yml").read_text(encoding="utf-8"))
    groups = workflow["jobs"]["stages"]["strategy"]["matrix"]["include"]
    named = [name for group in groups for name in group["stages"].split()]
    assert sorted(named) == sorted(stage.name for stage in EVERY)


def test_short_run_has_short_forms_and_the_named_stages_are_whole() -> None:
    whole = {stage.name: stage.run for stage in chosen([], everything=True, short=False)}
    short = {stage.name: stage.run for stage in chosen([], everything=False, short=False)}
    assert set(short) < set(whole)
    assert any(short[name] != whole[name] for name in short)
    assert [stage.run for stage in chosen(["hosts"], everything=False, short=False)] == [whole["hosts"]]
    assert [stage.run for stage in chosen(["hosts"], everything=False, short=True)] == [short["hosts"]]
