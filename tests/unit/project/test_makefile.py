# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""`make` and `.ci/run` on machines that lack something."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from support.repository import REPOSITORY

OLD_PYTHON = "exit 1"
# makes an environment whose pip reaches no index
WITHOUT_INDEX = 'case "$*" in "-m venv "*) mkdir -p "$3/bin"; cp "$0" "$3/bin/python";; "-m pip "*) exit 1;; esac'
# script of the program that unpacks PowerShell, or none; whether an earlier call of it has left an engine; added folder
CASES = {
    "unpack prints a folder": ("echo /unpacked/pwsh", True, "/unpacked/pwsh"),
    "unpack fails": ("exit 1", True, "caches/pwsh-engine-7.6.9/pwsh"),
    "no unpack": ("", True, "caches/pwsh-engine-7.6.9/pwsh"),
    "neither unpack nor engine": ("", False, None),
}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / "tests").mkdir()
    for name in ("Makefile", "tests/requirements.txt", "tests/requirements-rehearsal.txt"):
        shutil.copy(REPOSITORY / name, tmp_path / name)
    return tmp_path


def make(checkout: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["make", *words],
        cwd=checkout,
        env={"PATH": os.environ["PATH"], **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    ("script", "message"),
    [(OLD_PYTHON, "not Python 3.11 or later; name one: make PYTHON="), (WITHOUT_INDEX, "uv: not installed; ")],
)
def test_make_venv_names_what_is_missing(checkout: Path, script: str, message: str) -> None:
    python = checkout / "python"
    python.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    python.chmod(0o755)
    made = make(checkout, f"PYTHON={python}", "venv")
    assert made.returncode == 2
    assert message in made.stderr
    assert not (checkout / ".venv").exists()


def test_what_checkouts_share_is_in_the_checkout_without_a_home_directory(checkout: Path) -> None:
    show = ("--eval", "show: ; @echo $(XDG_CACHE_HOME)", "show")
    home = checkout / "home"
    home.mkdir()
    assert make(checkout, *show, HOME=str(home)).stdout.strip() == f"{home}/.cache"
    assert make(checkout, *show, HOME=str(home), XDG_CACHE_HOME="/elsewhere").stdout.strip() == "/elsewhere"
    for absent in ({"HOME": "/nonexistent"}, {}):
        assert make(checkout, *show, **absent).stdout.strip() == f"{checkout}/.cache/shared"


@pytest.mark.parametrize("case", CASES)
def test_folder_of_powershell_is_on_path_where_there_is_one(tmp_path: Path, case: str) -> None:
    script, has_engine, folder = CASES[case]
    checkout, caches = tmp_path / "checkout", tmp_path / "caches"
    (checkout / ".ci").mkdir(parents=True)
    shutil.copy(REPOSITORY / ".ci" / "run", checkout / ".ci")
    (checkout / "Makefile").write_text('test:\n\t@echo "$$PATH"\n', encoding="utf-8")
    if has_engine:
        (caches / "pwsh-engine-7.6.9" / "pwsh").mkdir(parents=True)
    if script:
        unpack = tmp_path / "shared" / "tools" / "pwsh" / "unpack"
        unpack.parent.mkdir(parents=True)
        unpack.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        unpack.chmod(0o755)
    path = os.environ["PATH"]
    environment = {"PATH": path, "XDG_CACHE_HOME": str(caches)}
    command = [checkout / ".ci" / "run"]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=True)
    added = Path(ran.stdout.strip().removeprefix(f"{path}:"))
    assert added == tmp_path / folder if folder else not added.exists()
