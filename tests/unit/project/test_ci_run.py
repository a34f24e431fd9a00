# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""`.ci/run` puts the PowerShell for tests on PATH where there is one, and runs `make test` in any case."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from support.repository import REPOSITORY


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "checkout"
    (folder / ".ci").mkdir(parents=True)
    shutil.copy(REPOSITORY / ".ci" / "run", folder / ".ci")
    (folder / "Makefile").write_text('test:\n\t@echo "$$PATH"\n', encoding="utf-8")
    return folder


def added_to_path(checkout: Path) -> str:
    """Return what `.ci/run` appends to PATH for `make test`."""
    path = os.environ["PATH"]
    ran = subprocess.run(
        [checkout / ".ci" / "run"],
        env={"PATH": path, "XDG_CACHE_HOME": str(checkout.parent / "caches")},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return ran.stdout.strip().removeprefix(f"{path}:")


def make_unpack(checkout: Path, script: str) -> None:
    unpack = checkout.parent / "shared" / "tools" / "pwsh" / "unpack"
    unpack.parent.mkdir(parents=True)
    unpack.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    unpack.chmod(0o755)


def make_engine(checkout: Path) -> Path:
    engine = checkout.parent / "caches" / "pwsh-engine-7.6.9" / "pwsh"
    engine.mkdir(parents=True)
    return engine


def test_folder_that_unpack_prints_is_on_path(checkout: Path) -> None:
    make_engine(checkout)
    make_unpack(checkout, "echo /unpacked/pwsh")
    assert added_to_path(checkout) == "/unpacked/pwsh"


@pytest.mark.parametrize("unpack", [None, "exit 1"], ids=["no unpack", "unpack fails"])
def test_engine_that_an_earlier_unpack_left_is_on_path(checkout: Path, unpack: str | None) -> None:
    engine = make_engine(checkout)
    if unpack:
        make_unpack(checkout, unpack)
    assert added_to_path(checkout) == str(engine)


def test_without_an_engine_no_folder_is_added(checkout: Path) -> None:
    assert not Path(added_to_path(checkout)).exists()
