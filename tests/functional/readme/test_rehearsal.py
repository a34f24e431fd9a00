# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""`make rehearsal` by a user who can write to the checkout only, and has no home directory."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.other_user import AS_USER, USER, folder_for_user, python_for_user
from support.repository import REPOSITORY
from support.simulator.report_page import ReportPage
from tools.repository.collection_tree import copy_tree

PROGRAMS = ("ansible-galaxy", "ansible-playbook")


def install(checkout: Path, python: Path) -> None:
    """Make .venv as `make venv` does, with the installed libraries."""
    venv = checkout / ".venv"
    subprocess.run([python, "-m", "venv", "--without-pip", venv], check=True)
    (library,) = venv.glob("lib/python3*/site-packages")
    (library / "libraries.pth").write_text(sysconfig.get_path("purelib"))
    for program in PROGRAMS:
        text = Path(sys.executable).with_name(program).read_text().partition("\n")[2]
        (venv / "bin" / program).write_text(f"#!{venv / 'bin' / 'python'}\n{text}")
        (venv / "bin" / program).chmod(0o755)
    # make finds it complete
    for name in ("bin/uv", "for-rehearsal"):
        (venv / name).touch()


@pytest.fixture
def folder() -> Iterator[Path]:
    with folder_for_user() as found:
        yield found


def change_owner(folder: Path) -> None:
    """Change the owner of the folder and its content to the user."""
    for here, _folders, files in os.walk(folder):
        for path in (here, *(os.path.join(here, name) for name in files)):
            os.chown(path, USER, -1, follow_symlinks=False)


def test_rehearsal_needs_no_home_directory(folder: Path) -> None:
    python = python_for_user(f"sys.version_info[:2] == {sys.version_info[:2]!r}")
    # the present user runs it where other users have no Python of the version of .venv
    as_user = AS_USER if python else {}
    checkout = copy_tree(REPOSITORY, folder)
    install(checkout, python or Path(sys.executable))
    if as_user:
        change_owner(checkout)
    path = os.pathsep.join(
        dict.fromkeys(str(Path(program).parent) for program in map(shutil.which, ("make", "sh", "awk")) if program)
    )
    ran = subprocess.run(
        ["make", "rehearsal"],
        cwd=checkout,
        env={"PATH": path, "HOME": "/"},
        capture_output=True,
        text=True,
        check=False,
        **as_user,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "recovered" in ran.stdout
    assert "report .cache/rehearsal.html\n" in ran.stderr
    page = ReportPage.of(checkout / ".cache" / "rehearsal.html")
    steps = [page.steps(vm) for vm in ("vm1", "vm2")]
    # one of the VMs approves for both
    assert sorted(steps, key=len) == [["seen", "prepared", "recovered"], ["seen", "prepared", "approved", "recovered"]]
    (interruption,) = [line for line in page.data["lines"] if line["what"] == "impact-start"]
    assert sorted(interruption["resources"]) == ["vm1", "vm2"]
