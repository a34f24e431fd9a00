# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A gate is open while its file exists and only trusted users can create that file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hook_runner.gates import open_gates
from hook_runner.permissions import trusted_owners

NOBODY = 65534


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "gates"
    made.mkdir(0o755)
    return made


def is_open(path: Path) -> bool:
    return open_gates({"go": str(path)}, trusted_owners())["go"]


def test_it_follows_the_file(folder: Path) -> None:
    file = folder / "go"
    assert not is_open(file)
    file.touch(0o644)
    assert is_open(file)
    file.unlink()
    assert not is_open(file)


@pytest.mark.parametrize("mode", [0o777, 0o775, 0o1777])
def test_a_file_in_a_folder_that_others_can_write_opens_nothing(folder: Path, mode: int) -> None:
    (folder / "go").touch(0o644)
    folder.chmod(mode)
    assert not is_open(folder / "go")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_file_of_another_user_opens_no_gate(folder: Path) -> None:
    (folder / "go").touch(0o644)
    os.chown(folder / "go", NOBODY, -1)
    assert not is_open(folder / "go")


def test_a_folder_that_is_not_there_opens_nothing(folder: Path) -> None:
    assert not is_open(folder / "none" / "go")
