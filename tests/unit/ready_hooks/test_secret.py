# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ready_hooks.core.errors import HookError
from ready_hooks.core.secret import read_secret, secret_problem


def secret(folder: Path, content: bytes = b"word\n", mode: int = 0o600) -> str:
    path = folder / "secret"
    path.write_bytes(content)
    path.chmod(mode)
    return str(path)


@pytest.mark.parametrize("mode", [0o600, 0o400])
def test_read_secret_returns_the_text_without_white_space(tmp_path: Path, mode: int) -> None:
    path = secret(tmp_path, mode=mode)
    assert secret_problem(path) is None
    assert read_secret(path) == "word"


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o602, 0o660, 0o644, 0o777])
def test_secret_that_others_can_read_or_write_is_not_used(tmp_path: Path, mode: int) -> None:
    path = secret(tmp_path, mode=mode)
    assert f"{mode:04o}" in str(secret_problem(path))
    with pytest.raises(HookError):
        read_secret(path)


@pytest.mark.parametrize("content", [b"", b" \n", b"\xff\xfe"])
def test_empty_or_unreadable_secret_is_an_error(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(HookError):
        read_secret(secret(tmp_path, content))


def test_missing_secret_folder_and_named_pipe_are_errors(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe, 0o600)
    for path in (tmp_path / "missing", tmp_path, pipe):
        assert secret_problem(str(path)) is not None
        with pytest.raises(HookError, match=str(path)):
            read_secret(str(path))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
@pytest.mark.parametrize("given", ["file", "folder", "link"])
def test_secret_that_another_user_can_change_is_not_used(tmp_path: Path, given: str) -> None:
    link, folder = tmp_path / "link", tmp_path / "folder"
    folder.mkdir()
    link.symlink_to(secret(folder))
    assert read_secret(str(link)) == "word"
    os.chown({"file": folder / "secret", "folder": folder, "link": link}[given], 4711, 4711, follow_symlinks=False)
    with pytest.raises(HookError, match="belongs to user 4711"):
        read_secret(str(link))


def test_secret_in_a_folder_in_which_all_users_have_files_is_not_used(tmp_path: Path) -> None:
    path = secret(tmp_path)
    tmp_path.chmod(0o1777)
    with pytest.raises(HookError, match="can write"):
        read_secret(path)
