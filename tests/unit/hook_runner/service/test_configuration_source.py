# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The part of `status` about the configuration and hooks in force, and about a disk that has others."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hook_runner.config.settings import ConfigError
from hook_runner.service.configuration_source import Configuration
from support.daemon.hook_scripts import write_hook


class Disk:
    """A configuration with hooks, and what is in force of them."""

    def __init__(self, folder: Path) -> None:
        self.config, self.hooks = folder / "config.yml", folder / "hooks.d"
        self.config.write_bytes(b"hooks_directory: %s\r\npolicy: observe\n" % bytes(self.hooks))
        write_hook(self.hooks, "prepare/10-a", "exit 0\n")
        self._configuration = Configuration(str(self.config))

    def reload(self) -> None:
        self._configuration.load()

    def data(self) -> dict[str, Any]:
        return self._configuration.as_data()


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    tmp_path.chmod(0o755)
    made = Disk(tmp_path)
    made.reload()
    return made


def rewrite(file: Path, content: bytes) -> None:
    """Write a file, one second later by the clock of its file system."""
    before = file.stat()
    file.write_bytes(content)
    os.utime(file, (before.st_atime, before.st_mtime + 1))


def test_files_that_have_not_changed_do_not_differ(disk: Disk) -> None:
    data = disk.data()
    assert (data["path"], data["hooks_directory"]) == (str(disk.config), str(disk.hooks)) and data["loaded_at"]
    assert (data["differs"], data["changed"], data["restart_needed"], data["refusal"]) == (False, [], [], None)


def test_a_changed_file_differs_until_it_is_read(disk: Disk) -> None:
    file = disk.config
    rewrite(file, file.read_bytes())
    assert (disk.data()["differs"], disk.data()["changed"]) == (True, [str(file)])
    disk.reload()
    assert not disk.data()["differs"]
    file.unlink()
    assert disk.data()["changed"] == [str(file)]


@pytest.mark.parametrize(
    ("change", "changed"),
    [
        (lambda hooks: write_hook(hooks, "recover/10-a", "exit 0\n"), ["recover/10-a"]),
        (lambda hooks: rewrite(hooks / "prepare/10-a", b"#!/bin/sh\nexit 1\n"), ["prepare/10-a"]),
        (lambda hooks: (hooks / "prepare/10-a").chmod(0o644), ["prepare/10-a"]),
        (lambda hooks: (hooks / "prepare/10-a").chmod(0o777), ["prepare/10-a"]),
        (lambda hooks: (hooks / "prepare/10-a").rename(hooks / "prepare/20-a"), ["prepare/10-a", "prepare/20-a"]),
    ],
)
def test_changed_hooks_differ_until_they_are_read(
    disk: Disk, change: Callable[[Path], object], changed: list[str]
) -> None:
    change(disk.hooks)
    assert (disk.data()["differs"], disk.data()["changed"]) == (True, [str(disk.hooks / name) for name in changed])
    disk.reload()
    assert not disk.data()["differs"]


def test_a_refused_reload_keeps_what_is_in_force_and_says_why(disk: Disk) -> None:
    disk.config.write_text("intervall: 2\n")
    with pytest.raises(ConfigError):
        disk.reload()
    data = disk.data()
    assert data["changed"] == [str(disk.config)] and "did you mean interval?" in data["refusal"]


@pytest.mark.parametrize(
    "content", [b"", b"# all is gone\n", b"{}\n", None], ids=["no bytes", "comments", "no key", "no file"]
)
def test_empty_configuration_is_refused_while_an_event_is_in_progress(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes | None
) -> None:
    path = tmp_path / "config.yml"
    monkeypatch.setattr("hook_runner.config.settings.DEFAULT_PATH", str(path))
    path.write_bytes(b"margin: 2\n")
    configuration = Configuration(str(path))
    configuration.load()
    path.unlink() if content is None else path.write_bytes(content)
    with pytest.raises(ConfigError, match="an event is in progress"):
        configuration.load(may_be_empty=False)
    assert configuration.settings.margin == 2
    configuration.load()
    assert configuration.settings.margin == 5


def test_reload_refuses_a_file_that_others_can_write(disk: Disk) -> None:
    disk.config.chmod(0o666)
    with pytest.raises(ConfigError, match="can be written by others"):
        disk.reload()
    data = disk.data()
    assert data["changed"] == [str(disk.config)] and "can be written by others" in data["refusal"]


def test_keys_that_need_a_restart_differ_until_then(disk: Disk) -> None:
    before = disk.config.read_bytes()
    disk.config.write_bytes(before + b"timeout: 9\n")
    disk.reload()
    assert disk.data()["differs"] and disk.data()["restart_needed"] == ["timeout"]
    disk.config.write_bytes(before)
    disk.reload()
    assert not disk.data()["differs"]


def test_a_file_that_is_not_there_does_not_differ_until_it_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "config.yml"
    monkeypatch.setattr("hook_runner.config.settings.DEFAULT_PATH", str(path))
    configuration = Configuration(str(path))
    configuration.load()
    assert configuration.as_data()["differs"] is False
    path.write_text("interval: 2\n")
    assert configuration.as_data()["changed"] == [str(path)]
