# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Nothing is believed that others than its owner could have written."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest

from hook_runner.permissions import open_gates, permission_problem
from support.daemon.hook_scripts import write_program

AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "above" / "hooks.d"
    write_program(folder / "prepare" / "10-hook", "#!/bin/sh\n")
    return folder


def reason(home: Path, path: str = "prepare/10-hook") -> str:
    """Why the file is not trusted, "" where it is."""
    return permission_problem(str(home / path), str(home)) or ""


def test_a_file_of_root_in_folders_of_root_is_trusted_even_below_a_sticky_tmp(home: Path) -> None:
    home.parent.chmod(0o1777)
    assert reason(home) == ""


@pytest.mark.parametrize("mode", [0o775, 0o757, 0o777, 0o720, 0o702])
@pytest.mark.parametrize("path", ["prepare/10-hook", "prepare", ".", ".."])
def test_what_group_or_others_can_write_is_not_trusted(home: Path, path: str, mode: int) -> None:
    (home / path).chmod(mode)
    assert f"can be written by others than its owner (mode 0{mode:o})" in reason(home)


@pytest.mark.parametrize("path", ["prepare", "."])
def test_a_sticky_folder_is_not_trusted_where_hooks_lie(home: Path, path: str) -> None:
    (home / path).chmod(0o1777)
    assert "can be written by others" in reason(home)


def test_access_list_for_another_user_is_found(home: Path) -> None:
    # u::rwx, u:12345:rw-, g::r--, m::rw-, o::r--
    entries = (
        (0x01, 7, 0xFFFFFFFF),
        (0x02, 6, 12345),
        (0x04, 4, 0xFFFFFFFF),
        (0x10, 6, 0xFFFFFFFF),
        (0x20, 4, 0xFFFFFFFF),
    )
    access = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)
    try:
        os.setxattr(home / "prepare/10-hook", "system.posix_acl_access", access)
    except OSError as error:
        pytest.skip(f"no access lists here: {error}")
    assert "can be written by others" in reason(home)


@AS_ROOT
@pytest.mark.parametrize("path", ["prepare/10-hook", "prepare", ".", ".."])
def test_file_of_another_user_is_not_trusted(home: Path, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    os.chown(home / path, 12345, 0)
    assert "belongs to user 12345" in reason(home)
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert reason(home) == ""


def test_a_link_inside_is_followed(home: Path) -> None:
    (home / "shared").mkdir()
    (home / "prepare/10-hook").rename(home / "shared/hook")
    (home / "prepare/10-hook").symlink_to("../shared/hook")
    assert reason(home) == ""
    (home / "prepare/20-hook").symlink_to(home / "shared" / "hook")
    assert reason(home, "prepare/20-hook") == ""
    (home / "recover").symlink_to("prepare")
    assert reason(home, "recover/10-hook") == ""
    (home / "shared").chmod(0o777)
    assert "shared can be written" in reason(home)


def test_a_link_to_the_outside_is_not_trusted(home: Path, tmp_path: Path) -> None:
    (tmp_path / "hook").write_text("")
    (home / "prepare/20-hook").symlink_to(tmp_path / "hook")
    assert reason(home, "prepare/20-hook").endswith(f"/hook, which is outside {home}")
    (home / "recover").symlink_to("/usr")
    assert "outside" in reason(home, "recover/bin/env") or "outside" in reason(home, "recover")


def test_a_neighbour_with_a_longer_name_is_outside(home: Path) -> None:
    other = home.parent / "hooks.d-other"
    other.mkdir()
    (other / "hook").write_text("")
    (home / "prepare/20-hook").symlink_to(other / "hook")
    assert "outside" in reason(home, "prepare/20-hook")


def test_a_link_beside_dots_is_resolved_as_the_kernel_does(home: Path, tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    (home / "link").symlink_to(tmp_path / "far")
    (tmp_path / "10-hook").write_text("")
    # taken literally this would be home/prepare/10-hook
    assert "outside" in (permission_problem(str(home / "link") + "/../10-hook", str(home)) or "")


@pytest.mark.parametrize("target", ["20-hook", "absent", "10-hook/below"])
def test_a_link_to_nowhere_or_to_itself_and_a_missing_file_are_not_trusted(home: Path, target: str) -> None:
    (home / "prepare/20-hook").symlink_to(target)
    assert "cannot be examined" in reason(home, "prepare/20-hook")
    assert "cannot be examined: No such file" in reason(home, "prepare/absent")
    assert "cannot be examined" in (permission_problem(str(home) + "/a\0b", str(home)) or "")


def test_the_folder_itself_may_be_reached_by_a_link_that_only_root_can_move(home: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(home)
    assert permission_problem(str(link / "prepare/10-hook"), str(link)) is None
    # a user who can write the link's folder could change its target
    tmp_path.chmod(0o777)
    assert "can be written by others" in (permission_problem(str(link / "prepare/10-hook"), str(link)) or "")


@AS_ROOT
def test_another_users_link_in_a_sticky_folder_is_not_trusted(home: Path, tmp_path: Path) -> None:
    sticky = tmp_path / "sticky"
    sticky.mkdir()
    sticky.chmod(0o1777)
    link = sticky / "link"
    link.symlink_to(home)
    assert permission_problem(str(link / "prepare/10-hook"), str(link)) is None
    os.chown(link, 12345, 12345, follow_symlinks=False)
    assert "belongs to user 12345" in (permission_problem(str(link / "prepare/10-hook"), str(link)) or "")


def test_reasons_can_be_printed_whatever_the_names_hold(home: Path) -> None:
    name = "a\n\x1b[31m\udcff\u202e"
    (home / name).mkdir()
    text = permission_problem(str(home / name / "x"), str(home)) or ""
    assert text.isascii() and text.isprintable()


def test_gate_is_open_while_its_file_exists_and_only_trusted_users_can_create_it(tmp_path: Path) -> None:
    file = tmp_path / "gates" / "go"

    def is_open() -> bool:
        return open_gates({"go": str(file)})["go"]

    assert not is_open()
    file.parent.mkdir(0o755)
    assert not is_open()
    file.touch(0o644)
    assert is_open()
    for mode in (0o777, 0o775, 0o1777):
        file.parent.chmod(mode)
        assert not is_open()
    file.parent.chmod(0o755)
    assert is_open()
    file.unlink()
    assert not is_open()


@AS_ROOT
def test_file_of_another_user_opens_no_gate(tmp_path: Path) -> None:
    (tmp_path / "go").touch(0o644)
    os.chown(tmp_path / "go", 12345, -1)
    assert not open_gates({"go": str(tmp_path / "go")})["go"]
