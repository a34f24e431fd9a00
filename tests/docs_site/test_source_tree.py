# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The source tree of the site: only files that differ are written, and no other file stays."""

from __future__ import annotations

import os
from pathlib import Path

from tools.docs_site.source_tree import update


def test_update_keeps_the_times_of_equal_files_and_removes_others(tmp_path: Path) -> None:
    update(tmp_path, {"index.md": b"one", "start/gone.md": b"two", "images/a.svg": b"three"})
    for name in ("index.md", "images/a.svg"):
        os.utime(tmp_path / name, (1, 1))
    update(tmp_path, {"index.md": b"one", "images/a.svg": b"changed"})
    assert {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")} == {
        "index.md",
        "images",
        "images/a.svg",
    }
    assert (tmp_path / "index.md").stat().st_mtime == 1
    assert (tmp_path / "images" / "a.svg").stat().st_mtime > 1
    assert (tmp_path / "images" / "a.svg").read_bytes() == b"changed"
