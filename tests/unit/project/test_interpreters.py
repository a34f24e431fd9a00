# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The search for Pythons, and the folder that checkouts share."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from support.interpreters import find_python, search_path
from support.repository import REPOSITORY
from support.shared_cache import shared_cache

MINOR = sys.version_info.minor


def program(folder: Path, minor: int, script: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    made = folder / f"python3.{minor}"
    made.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    made.chmod(0o755)
    return made


def test_search_leaves_shims_out_and_finds_what_pyenv_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path / "pyenv" / "shims", MINOR, "exit 127")
    program(tmp_path / "pyenv" / "versions" / "3.9.1" / "bin", 9, "true")
    program(tmp_path / "pyenv" / "versions" / "3.10.1" / "bin", 10, "true")
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    monkeypatch.setenv("PATH", f"{tmp_path}/pyenv/shims:/usr/bin")
    versions = f"{tmp_path}/pyenv/versions"
    assert search_path().split(os.pathsep) == [f"{versions}/3.9.1/bin", f"{versions}/3.10.1/bin", "/usr/bin"]


def test_python_is_found_outside_of_its_virtual_environment() -> None:
    found = find_python(MINOR)
    assert found is not None and found.exists() and not found.is_relative_to(Path(sys.prefix, "bin"))


@pytest.mark.parametrize("script", ["exit 127", "exit 1"])
def test_program_that_fails_is_no_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    program(tmp_path, 77, script)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_python(77) is None
    assert find_python(78) is None


def test_cache_is_where_xdg_says_at_home_or_in_the_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert shared_cache() == tmp_path / "xdg" / "azure-imds"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert shared_cache() == tmp_path / ".cache" / "azure-imds"
    monkeypatch.setenv("HOME", str(tmp_path / "absent"))
    assert shared_cache() == REPOSITORY / ".cache" / "shared" / "azure-imds"
