# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The launcher `run` by its links."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.repository import REPOSITORY

FILES = REPOSITORY / "roles" / "ready_hooks" / "files"
CODE = FILES / "ready_hooks"


def launch(program: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(program), *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        env={"PATH": os.environ["PATH"], **environment},
        check=False,
    )


def test_launcher_runs_the_hook_of_the_link_name(tmp_path: Path) -> None:
    result = launch(FILES / "systemd-units", "prepare", "--help")
    assert (result.returncode, result.stdout.split()[1]) == (0, "systemd-units")
    (tmp_path / "systemd-units").symlink_to(FILES / "run")
    assert launch(tmp_path / "systemd-units", "--help").stdout.split()[1] == "systemd-units"


def test_launcher_as_a_copy_runs_the_code_beside_it(tmp_path: Path) -> None:
    shutil.copytree(CODE, tmp_path / "ready_hooks", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(FILES / "run", tmp_path / "systemd-units")
    assert launch(tmp_path / "systemd-units", "--help").returncode == 0
    assert not list(tmp_path.rglob("__pycache__"))


def test_launcher_by_its_own_name_is_status_2() -> None:
    assert launch(FILES / "run", "prepare").returncode == 2


@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
def test_messages_with_other_characters_do_not_end_the_hook(tmp_path: Path, locale: str) -> None:
    result = subprocess.run(
        [str(FILES / "systemd-units").encode(), b"check", b"--units", b"\xff\xe4.service"],
        capture_output=True,
        timeout=120,
        env={"PATH": str(tmp_path) + ":" + os.environ["PATH"], "LC_ALL": locale},
        check=False,
    )
    assert result.returncode in (1, 2)
    assert b"Traceback" not in result.stderr


def test_recover_whose_output_has_no_reader_goes_on(tmp_path: Path) -> None:
    """As after `recover | head`, or in a session whose connection is lost."""
    ready, records = tmp_path / "ready", tmp_path / "records"
    ready.write_text("up", encoding="utf-8")
    words = ("--path", str(ready), "--wait", "0", "--state-directory", str(records))
    assert launch(FILES / "health-file", "prepare", *words).returncode == 0 and not ready.exists()
    reader, writer = os.pipe()
    os.close(reader)
    try:
        recover = [str(FILES / "health-file"), "recover", *words]
        result = subprocess.run(recover, stdout=writer, stderr=writer, timeout=120, check=False)
    finally:
        os.close(writer)
    assert (result.returncode, ready.read_text(encoding="utf-8")) == (0, "up")


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder with what the launcher needs, but without a Python."""
    for program in ("readlink", "sh"):
        (tmp_path / program).symlink_to(str(shutil.which(program)))
    return tmp_path


def test_launcher_without_python_says_so(programs: Path) -> None:
    result = launch(FILES / "systemd-units", "check", PATH=str(programs))
    assert (result.returncode, "READY_HOOKS_PYTHON" in result.stderr) == (1, True)


def test_launcher_takes_the_python_of_the_variable(programs: Path) -> None:
    own = programs / "own"
    own.symlink_to(sys.executable)
    result = launch(FILES / "systemd-units", "--help", PATH=str(programs), READY_HOOKS_PYTHON=str(own))
    assert result.returncode == 0


def test_launcher_passes_over_a_python_that_is_too_old(programs: Path) -> None:
    old = programs / "python3"
    old.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    old.chmod(0o755)
    (programs / "python3.11").symlink_to(sys.executable)
    assert launch(FILES / "systemd-units", "--help", PATH=str(programs)).returncode == 0
