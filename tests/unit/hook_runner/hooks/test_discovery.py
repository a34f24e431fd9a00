# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Hooks are the executables of a stage's folder, in name order; files that others can write are refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hook_runner.config.settings import Settings
from hook_runner.hooks.discovery import WHOLE_DIRECTORY, Hook, Skipped, SkipReason, discover_hooks
from hook_runner.records import STAGES
from support.daemon.hook_scripts import write_program

Found = tuple[dict[str, list[Hook]], list[Skipped]]


def put(home: Path, path: str, mode: int = 0o755) -> None:
    write_program(home / path, "#!/bin/sh\n", mode)


def find(home: Path, settings: Settings | None = None) -> Found:
    return discover_hooks(str(home), settings or Settings())


def names(found: Found, stage: str = "prepare") -> list[str]:
    return [hook.name for hook in found[0][stage]]


def test_missing_folders_have_no_hooks(tmp_path: Path) -> None:
    assert find(tmp_path / "absent") == ({stage: [] for stage in STAGES}, [])
    assert find(tmp_path) == ({stage: [] for stage in STAGES}, [])


def test_hooks_come_in_the_order_of_their_bytes(tmp_path: Path) -> None:
    for name in ("B", "a", "10-z", "9-a", "10-a", "10_a", "10.a", "A"):
        put(tmp_path, "prepare/" + name)
    put(tmp_path, "recover/x")
    found = find(tmp_path)
    assert names(found) == ["10-a", "10-z", "10.a", "10_a", "9-a", "A", "B", "a"]
    assert names(found, "recover") == ["x"]
    assert found[0]["prepare"][0].path == str(tmp_path / "prepare" / "10-a")
    assert not any(hook.problem for hook in found[0]["prepare"])


IGNORED = ".hidden 10-x~ 10-x.bak 10-x.dpkg-old 10-x.dpkg-dist 10-x.rpmnew 10-x.rpmsave 10-x.disabled README README.md"


@pytest.mark.parametrize(
    ("names_of_files", "reason"),
    [(IGNORED.split(), SkipReason.IGNORED), (["-rf", "a b", "a\nb", "ä", "a;b", "$(x)", "\udcff"], SkipReason.NAME)],
)
def test_file_that_is_not_a_hook_is_skipped_and_reported(
    tmp_path: Path, names_of_files: list[str], reason: SkipReason
) -> None:
    for name in (*names_of_files, "10-good"):
        put(tmp_path, "prepare/" + name)
    found = find(tmp_path)
    assert names(found) == ["10-good"]
    assert {skipped.path: skipped.reason for skipped in found[1]} == {
        str(tmp_path / "prepare" / name): reason for name in names_of_files
    }
    assert all(skipped.text.isascii() and skipped.text.isprintable() for skipped in found[1])


def test_file_without_x_bit_and_folder_are_reported(tmp_path: Path) -> None:
    put(tmp_path, "prepare/10-x", 0o644)
    (tmp_path / "prepare" / "20-folder").mkdir()
    os.mkfifo(tmp_path / "prepare" / "30-pipe", 0o755)
    found = find(tmp_path)
    assert names(found) == []
    assert [skipped.reason for skipped in found[1]] == [
        SkipReason.NOT_EXECUTABLE,
        SkipReason.NOT_A_FILE,
        SkipReason.NOT_A_FILE,
    ]


@pytest.mark.parametrize("path", [".", "prepare"])
@pytest.mark.parametrize("hooks", [(), ("10-x", "20-x")])
def test_a_folder_that_others_can_write_is_one_refused_hook_also_when_it_is_empty(
    tmp_path: Path, path: str, hooks: tuple[str, ...]
) -> None:
    (tmp_path / "prepare").mkdir()
    for name in hooks:
        put(tmp_path, "prepare/" + name)
    assert names(find(tmp_path)) == list(hooks)
    (tmp_path / path).chmod(0o777)
    (hook,) = find(tmp_path)[0]["prepare"]
    assert hook.name == WHOLE_DIRECTORY
    assert "can be written by others" in (hook.problem or "")
    # another user can have removed the folder, too
    (tmp_path / "prepare").rename(tmp_path / "moved")
    assert names(find(tmp_path)) == ([WHOLE_DIRECTORY] if path == "." else [])


@pytest.mark.parametrize("target", ["absent", "prepare", "/usr/bin"])
def test_a_stage_that_is_a_link_to_nowhere_or_outside_is_refused(tmp_path: Path, target: str) -> None:
    (tmp_path / "prepare").symlink_to(target)
    (hook,) = find(tmp_path)[0]["prepare"]
    assert hook.name == WHOLE_DIRECTORY and hook.problem


def test_links_to_hooks_inside_are_run_and_others_refused(tmp_path: Path) -> None:
    put(tmp_path, "prepare/10-x")
    (tmp_path / "recover").mkdir()
    (tmp_path / "recover" / "10-x").symlink_to("../prepare/10-x")
    (tmp_path / "recover" / "20-x").symlink_to("/bin/true")
    (tmp_path / "recover" / "30-x").symlink_to("absent")
    (tmp_path / "recover" / "40-x").symlink_to("40-x")
    refusals = [hook.problem or "" for hook in find(tmp_path)[0]["recover"]]
    assert refusals[0] == ""
    assert "outside" in refusals[1]
    assert "cannot be examined" in refusals[2]
    assert "cannot be examined" in refusals[3]
