# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ready_hooks.core.errors import HookError, OutOfTime
from ready_hooks.hooks import health_file
from support.ready_hooks.hook_host import HookHost


def test_put_restores_content_and_mode(tmp_path: Path) -> None:
    path = tmp_path / "ready"
    path.write_bytes(b"up\0\xff")
    path.chmod(0o2640)
    before = health_file.read(str(path))
    health_file.put(str(path), None)
    assert health_file.read(str(path)) is None
    health_file.put(str(path), health_file.from_record(list(before or ())))
    assert health_file.read(str(path)) == before
    assert (path.read_bytes(), os.listdir(tmp_path)) == (b"up\0\xff", ["ready"])


def test_put_restores_a_symbolic_link_and_not_its_target(tmp_path: Path) -> None:
    path = tmp_path / "ready"
    path.symlink_to("elsewhere")
    before = health_file.read(str(path))
    health_file.put(str(path), None)
    health_file.put(str(path), before)
    assert os.readlink(path) == "elsewhere"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
def test_put_gives_a_link_to_its_owner_and_no_file_that_has_taken_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, own = tmp_path / "ready", tmp_path / "file of root"
    link = health_file.SavedFile(health_file.encoded("elsewhere"), True, 0o777, 65534, 65534)
    health_file.put(str(path), link)
    assert path.lstat().st_uid == 65534
    own.touch()
    make = os.symlink

    def make_and_replace(target: bytes, name: bytes, dir_fd: int) -> None:
        make(target, name, dir_fd=dir_fd)
        # the owner of the folder is as fast as this
        os.replace(own, tmp_path / os.fsdecode(name))

    monkeypatch.setattr(os, "symlink", make_and_replace)
    health_file.put(str(path), link)
    assert (path.is_symlink(), path.stat().st_uid) == (False, 0)


def test_read_refuses_a_folder_and_a_large_file(tmp_path: Path) -> None:
    with pytest.raises(HookError, match="neither a file"):
        health_file.read(str(tmp_path))
    large = tmp_path / "large"
    large.write_bytes(b"x" * (1024 * 1024 + 1))
    with pytest.raises(HookError, match="larger"):
        health_file.read(str(large))


def test_put_into_a_missing_folder_fails_and_names_the_file(tmp_path: Path) -> None:
    path = str(tmp_path / "missing" / "ready")
    with pytest.raises(HookError, match=f"^{path}: "):
        health_file.put(path, health_file.SavedFile(health_file.encoded("up")))


def test_recover_restores_the_first_file_although_another_content_was_configured(hook_host: HookHost) -> None:
    path = hook_host.folder / "ready"
    path.write_text("up", encoding="utf-8")
    for content in ("down", "away"):
        hook_host.hook("health-file", path=str(path), action="write", wait=0, content=content).prepare()
        assert path.read_text(encoding="utf-8") == content
    hook_host.hook("health-file", path=str(path)).recover()
    assert path.read_text(encoding="utf-8") == "up"


@pytest.fixture
def removed(hook_host: HookHost) -> Path:
    """A file that prepare has removed."""
    path = hook_host.folder / "ready"
    path.touch()
    hook_host.hook("health-file", path=str(path), wait=0).prepare()
    return path


def test_recover_at_the_end_of_its_time_reports_the_output_of_the_check(hook_host: HookHost, removed: Path) -> None:
    # the message has the command, too, which does not have these words
    command = ["sh", "-c", "printf 'not%syet' ' '; exit 1"]
    with pytest.raises(OutOfTime, match="not yet"):
        hook_host.hook("health-file", seconds=10, path=str(removed), check_command=command).recover()
    assert not removed.exists()


def test_recover_does_not_wait_for_a_check_that_does_not_exist(hook_host: HookHost, removed: Path) -> None:
    before = hook_host.clock.now
    with pytest.raises(HookError, match="^crul: there is no such program; correct check_command$"):
        hook_host.hook("health-file", path=str(removed), check_command=["crul"]).recover()
    assert (hook_host.clock.now, removed.exists()) == (before, False)
