# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The state file of a beacon: its content, its damage and its modes."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import pytest

from azure_events_watch import state_file


def test_state_file_has_what_was_written_last(tmp_path: Path) -> None:
    path = state_file.state_path(str(tmp_path), "azure events/1")
    assert state_file.read(path) is None
    state_file.write(path, {"beacon": "azure events/1", "entries": [1]})
    state_file.write(path, {"beacon": "azure events/1", "entries": [2]})
    found = state_file.read(path)
    assert found is not None and found["entries"] == [2]
    assert list(state_file.read_all(str(tmp_path))) == ["azure events/1"]
    assert len(os.listdir(os.path.dirname(path))) == 1


@pytest.mark.parametrize("content", ["", "{", "[]", '{"version": 0, "entries": []}', '{"version": 1}', "\u00fc"])
def test_damaged_state_file_raises_and_is_not_listed(tmp_path: Path, content: str) -> None:
    path = state_file.state_path(str(tmp_path), "one")
    state_file.ensure_directory(str(tmp_path))
    Path(path).write_text(content, encoding="utf-8")
    with pytest.raises(ValueError):
        state_file.read(path)
    assert state_file.read_all(str(tmp_path)) == {}


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no mode bits of files")
def test_state_file_is_private_also_in_a_folder_that_was_open(tmp_path: Path) -> None:
    folder = tmp_path / "azure_events"
    folder.mkdir(mode=0o755)
    path = Path(state_file.state_path(str(tmp_path), "one"))
    state_file.write(str(path), {"beacon": "one", "entries": []})
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700 and stat.S_IMODE(path.stat().st_mode) == 0o600
