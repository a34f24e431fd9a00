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

# script of the program that unpacks PowerShell, or none; whether an earlier call of it has left an engine; added folder
CASES = {
    "unpack prints a folder": ("echo /unpacked/pwsh", True, "/unpacked/pwsh"),
    "unpack fails": ("exit 1", True, "caches/pwsh-engine-7.6.9/pwsh"),
    "no unpack": ("", True, "caches/pwsh-engine-7.6.9/pwsh"),
    "neither unpack nor engine": ("", False, None),
}


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
