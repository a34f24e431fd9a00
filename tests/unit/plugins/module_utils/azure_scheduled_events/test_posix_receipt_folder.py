# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: GPL-3.0-or-later
"""The folder of receipts on Linux: not used if another user can write to it."""

from __future__ import annotations

import errno
import os
import sys

import pytest
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events import (
    posix_receipt_folder,
    receipts,
)

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no owners and mode bits of files")

HERE = "http://169.254.169.254"


@pytest.mark.parametrize("mode", [0o775, 0o757, 0o777, 0o1777])
def test_a_folder_that_others_can_write_to_is_not_used(tmp_path, mode):
    folder = tmp_path / "receipts"
    found = receipts.Receipts(str(folder), HERE)
    found.write("A", "1")
    folder.chmod(mode)
    assert found.find("A") is None
    with pytest.raises(OSError) as refused:
        found.write("B", "1")
    assert refused.value.errno == errno.EPERM
    found.prune([])
    folder.chmod(0o755)
    assert found.find("A") == "1" and len(list(folder.iterdir())) == 1


@pytest.mark.skipif(sys.platform != "win32" and os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_another_user_is_not_used(tmp_path):
    folder = tmp_path / "receipts"
    found = receipts.Receipts(str(folder), HERE)
    found.write("A", "1")
    os.chown(str(folder), 12345, 12345)
    assert found.find("A") is None
    with pytest.raises(OSError) as refused:
        found.write("A", "2")
    assert refused.value.errno == errno.EPERM


@pytest.mark.parametrize(
    "user, home, folder",
    [
        (0, "/srv/homes/one", posix_receipt_folder.DEFAULT_FOLDER),
        (12345, "/srv/homes/one", "/srv/homes/one/.local/state/azure-scheduled-events/approvals"),
        (2**31, None, posix_receipt_folder.DEFAULT_FOLDER),
    ],
)
def test_each_user_has_a_folder_of_its_own(monkeypatch, user, home, folder):
    monkeypatch.setattr(os, "geteuid", lambda: user)
    monkeypatch.setattr(os, "getuid", lambda: user)
    monkeypatch.delenv("HOME", raising=False) if home is None else monkeypatch.setenv("HOME", home)
    assert receipts.default_folder() == folder
