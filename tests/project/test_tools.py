# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The runner's own tools: a mistake in them would let other mistakes through."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tools.ansible_test import counted, sanity_outcome
from tools.junit import read_junit
from tools.pythons import clean_path, find_interpreters, real_interpreter
from tools.stage import Outcome
from tools.tree import INSIDE, copy_tree

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
    imposter.write_text(f"#!/bin/sh\nexec {sys.executable} \"$@\"\n")
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


def test_sanity_that_ran_nothing_has_failed() -> None:
    assert sanity_outcome(0, "WARNING: All targets skipped.\n").failed == 1


def test_command_that_dies_without_a_result_has_failed(tmp_path: Path) -> None:
    assert read_junit(tmp_path / "none.xml", 1) == Outcome(failed=1)


def test_junit_counts_and_reasons(tmp_path: Path) -> None:
    file = tmp_path / "result.xml"
    file.write_text(
        '<testsuites><testsuite tests="3" failures="1" errors="0" skipped="1"><testcase name="a"><skipped message="needs root"/></testcase>'
        "</testsuite></testsuites>"
    )
    assert read_junit(file, 1) == Outcome(1, 1, 1, ("needs root",))
