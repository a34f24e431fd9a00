# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The copy of the checkout that Ansible's tools get."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tools.repository.collection_tree import INSIDE, copy_tree


def repository(folder: Path, **files: str) -> Path:
    subprocess.run(["git", "init", "--quiet", folder], check=True)
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder


def test_copy_follows_the_repository(tmp_path: Path) -> None:
    source = repository(tmp_path / "source", stays="1", goes="2")
    (source / "link").symlink_to("stays")
    (source / ".gitignore").write_text("ignored\n")
    (source / "ignored").write_text("3")
    copy = copy_tree(source, tmp_path / "copy")
    assert copy == tmp_path / "copy" / INSIDE
    assert sorted(file.name for file in copy.iterdir()) == [".git", ".gitignore", "goes", "link", "stays"]
    assert os.readlink(copy / "link") == "stays"

    (source / "goes").unlink()
    (source / "stays").write_text("changed")
    copy_tree(source, tmp_path / "copy")
    assert sorted(file.name for file in copy.iterdir()) == [".git", ".gitignore", "link", "stays"]
    assert (copy / "stays").read_text() == "changed"


def test_copy_has_only_what_is_named(tmp_path: Path) -> None:
    source = repository(tmp_path / "source", wanted="1", other="2")
    copy = copy_tree(source, tmp_path / "copy", only=["wanted"])
    assert sorted(file.name for file in copy.iterdir()) == [".git", "wanted"]


def test_copy_keeps_what_ansible_test_stored(tmp_path: Path) -> None:
    source = repository(tmp_path / "source", file="1")
    kept = tmp_path / "copy" / INSIDE / "tests" / "output" / "venv" / "python"
    kept.parent.mkdir(parents=True)
    kept.touch()
    copy_tree(source, tmp_path / "copy")
    assert kept.exists()
