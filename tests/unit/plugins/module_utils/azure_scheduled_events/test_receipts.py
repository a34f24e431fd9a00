# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: GPL-3.0-or-later
"""Receipts of approvals: written completely or not at all, and safe with any id."""

from __future__ import annotations

import errno
import os
import stat
import sys
from datetime import datetime, timedelta, timezone

import pytest
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.receipts import (
    DEFAULT_FOLDER,
    Receipts,
    default_folder,
)

HERE = "http://169.254.169.254"
POSIX = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no owners and mode bits of files")
NOON = datetime(2026, 11, 21, 12, tzinfo=timezone.utc)


def test_a_receipt_is_found_in_any_letter_case(tmp_path):
    receipts = Receipts(str(tmp_path / "not" / "yet"), HERE)
    assert receipts.find("Abc") is None
    receipts.write("Abc", "2026-11-21T12:00:00Z")
    assert receipts.find("aBC") == "2026-11-21T12:00:00Z"
    assert receipts.find("Abcd") is None


def test_a_receipt_of_another_not_before_does_not_count(tmp_path):
    receipts = Receipts(str(tmp_path), HERE)
    receipts.write("A", "1", NOON)
    assert receipts.find("a", NOON) == "1" and receipts.find("A", NOON + timedelta(seconds=0.4)) == "1"
    assert receipts.find("A", NOON + timedelta(hours=1)) is None
    # the next occurrence needs an approval of its own
    receipts.write("A", "2", NOON + timedelta(hours=1))
    assert receipts.find("A", NOON + timedelta(hours=1)) == "2" and receipts.find("A", NOON) is None


def test_an_unknown_not_before_contradicts_no_receipt(tmp_path):
    receipts = Receipts(str(tmp_path), HERE)
    receipts.write("A", "1")
    assert receipts.find("A", NOON) == "1"
    receipts.write("A", "1", NOON)
    assert receipts.find("A") == "1"


def test_a_receipt_counts_at_its_own_endpoint_only(tmp_path):
    here, there = Receipts(str(tmp_path), HERE), Receipts(str(tmp_path), "http://127.0.0.1:8080")
    here.write("A", "1")
    assert there.find("A") is None
    there.write("A", "2")
    here.write("A", "3")
    assert (here.find("A"), there.find("A")) == ("3", "2")
    assert list(here.read()) == ["a"]


@pytest.mark.parametrize("event_id", ["../../escape", "a/b", "x" * 5000, "new\nline", "\ud800", "\0"])
def test_any_id_is_a_text_in_the_only_file(tmp_path, event_id):
    receipts = Receipts(str(tmp_path / "in"), HERE)
    receipts.write("A", "1")
    receipts.write(event_id, "2")
    assert (receipts.find("A"), receipts.find(event_id)) == ("1", "2")
    assert os.listdir(str(tmp_path)) == ["in"] and os.listdir(str(tmp_path / "in")) == ["receipts.json"]


def test_a_receipt_of_another_boot_does_not_count(tmp_path):
    before = Receipts(str(tmp_path), HERE, lambda: "boot-1")
    before.write("A", "1", NOON)
    now = Receipts(str(tmp_path), HERE, lambda: "boot-2")
    assert (before.find("A", NOON), now.find("A", NOON)) == ("1", None)
    assert now.write("B", "2") is False
    assert (before.read(), now.find("A"), now.find("B")) == ({}, None, "2")


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", "{}", '{"receipts": 7}', '{"receipts": {"x": ["A"]}}', "\u00fc", "[" * 100_000],
    ids=range(8),
)
def test_damaged_file_is_replaced_with_a_report(tmp_path, content):
    receipts = Receipts(str(tmp_path), HERE)
    assert receipts.write("A", "1") is False
    (tmp_path / "receipts.json").write_text(content, encoding="utf-8")
    assert receipts.find("A") is None
    assert receipts.write("B", "2") is True
    assert receipts.write("A", "3") is False
    assert (receipts.find("A"), receipts.find("B")) == ("3", "2")


@POSIX
@pytest.mark.parametrize("mode", [0o775, 0o757, 0o777, 0o1777])
def test_a_folder_that_others_can_write_to_is_not_used(tmp_path, mode):
    folder = tmp_path / "receipts"
    found = Receipts(str(folder), HERE)
    found.write("A", "1")
    folder.chmod(mode)
    assert found.find("A") is None
    with pytest.raises(OSError) as refused:
        found.write("B", "1")
    assert refused.value.errno == errno.EPERM
    folder.chmod(0o755)
    assert (found.find("A"), found.find("B")) == ("1", None)


@POSIX
@pytest.mark.skipif(sys.platform != "win32" and os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_another_user_is_not_used(tmp_path):
    folder = tmp_path / "receipts"
    found = Receipts(str(folder), HERE)
    found.write("A", "1")
    os.chown(str(folder), 12345, 12345)
    assert found.find("A") is None
    with pytest.raises(OSError) as refused:
        found.write("A", "2")
    assert refused.value.errno == errno.EPERM


@POSIX
def test_only_the_user_can_write_to_the_file(tmp_path):
    before = os.umask(0)
    try:
        Receipts(str(tmp_path / "receipts"), HERE).write("A", "1")
    finally:
        os.umask(before)
    assert [stat.S_IMODE(os.stat(str(path)).st_mode) for path in tmp_path.rglob("*")] == [0o755, 0o644]


@POSIX
@pytest.mark.parametrize(
    "user, home, folder",
    [
        (0, "/srv/homes/one", DEFAULT_FOLDER),
        (12345, "/srv/homes/one", "/srv/homes/one/.local/state/azure-scheduled-events/approvals"),
        (2**31, None, DEFAULT_FOLDER),
    ],
)
def test_each_user_has_a_folder_of_its_own(monkeypatch, user, home, folder):
    monkeypatch.setattr(os, "geteuid", lambda: user)
    monkeypatch.setattr(os, "getuid", lambda: user)
    monkeypatch.delenv("HOME", raising=False) if home is None else monkeypatch.setenv("HOME", home)
    assert default_folder() == folder


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
    assert default_folder() == os.path.join(parent, "azure-scheduled-events", "approvals")
