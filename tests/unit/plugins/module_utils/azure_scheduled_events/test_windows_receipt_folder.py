# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: GPL-3.0-or-later
"""The folder of receipts on Windows; all except the default runs elsewhere, too."""

from __future__ import annotations

import os
import sys

import pytest
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events import (
    windows_receipt_folder,
)


def test_folder_keeps_the_last_text_of_each_file(tmp_path):
    path = str(tmp_path / "not" / "yet")
    windows_receipt_folder.create_folder(path)
    windows_receipt_folder.create_folder(path)
    with windows_receipt_folder.open_folder(path) as folder:
        folder.write("a.json", "1")
        folder.write("a.json", "2")
        folder.write("b.json", "3")
        assert sorted(folder.names()) == ["a.json", "b.json"]
        assert (folder.read("a.json"), folder.read("b.json")) == ("2", "3")
        folder.remove("b.json")
        assert folder.names() == ["a.json"]


def test_folder_that_is_missing_or_a_file_raises(tmp_path):
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    for path in (tmp_path / "absent", tmp_path / "file"):
        with windows_receipt_folder.open_folder(str(path)) as folder:
            with pytest.raises(OSError):
                folder.names()
            with pytest.raises(OSError):
                folder.write("a.json", "1")
            with pytest.raises(OSError):
                folder.read("a.json")
            with pytest.raises(OSError):
                folder.remove("a.json")
    with pytest.raises(OSError):
        windows_receipt_folder.create_folder(str(tmp_path / "file"))


def test_failed_write_leaves_no_draft(tmp_path):
    (tmp_path / "a.json").mkdir()
    with windows_receipt_folder.open_folder(str(tmp_path)) as folder:
        with pytest.raises(OSError):
            folder.write("a.json", "1")
        assert folder.names() == ["a.json"]


@pytest.mark.skipif(sys.platform != "win32", reason="needs the paths of Windows")
@pytest.mark.parametrize(
    "program_data, parent",
    [("D:\\Data", "D:\\Data"), ("", "C:\\ProgramData"), ("Data", "C:\\ProgramData"), (None, "C:\\ProgramData")],
)
def test_default_folder_is_below_programdata(monkeypatch, program_data, parent):
    if program_data is None:
        monkeypatch.delenv("PROGRAMDATA", raising=False)
    else:
        monkeypatch.setenv("PROGRAMDATA", program_data)
    assert windows_receipt_folder.default_folder() == os.path.join(parent, "azure-scheduled-events", "approvals")
