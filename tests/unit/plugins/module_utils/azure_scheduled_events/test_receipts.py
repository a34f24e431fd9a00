# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: GPL-3.0-or-later
"""Receipts of approvals: written completely or not at all, and safe with any id."""

from __future__ import annotations

import json
import os
import sys
from datetime import datetime, timedelta, timezone

import pytest
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.receipts import (
    Receipts,
    stamped_boot,
)

HERE = "http://169.254.169.254"
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
    Receipts(str(tmp_path), HERE).write("A", "2026-11-21T12:00:00Z")
    assert Receipts(str(tmp_path), "http://127.0.0.1:8080").find("A") is None


@pytest.mark.parametrize("event_id", ["../../escape", "a/b", "x" * 5000, "new\nline", "\ud800", "\0"])
def test_any_id_stays_inside_the_folder(tmp_path, event_id):
    receipts = Receipts(str(tmp_path / "in"), HERE)
    receipts.write(event_id, "2026-11-21T12:00:00Z")
    assert receipts.find(event_id) == "2026-11-21T12:00:00Z"
    assert os.listdir(str(tmp_path)) == ["in"] and len(os.listdir(str(tmp_path / "in"))) == 1


@pytest.mark.parametrize("content", ["", "{", "[]", '{"event_id": "other"}', "\u00fc"])
def test_damaged_receipt_is_ignored(tmp_path, content):
    receipts = Receipts(str(tmp_path), HERE)
    receipts.write("A", "2026-11-21T12:00:00Z")
    (path,) = list(tmp_path.iterdir())
    path.write_text(content, encoding="utf-8")
    assert receipts.find("A") is None


def test_receipts_of_events_that_are_over_are_removed(tmp_path):
    here, there = Receipts(str(tmp_path), HERE), Receipts(str(tmp_path), "http://127.0.0.1:8080")
    for receipts in (here, there):
        receipts.write("A", "1")
        receipts.write("B", "1")
    here.prune(["a"])
    assert (here.find("A"), here.find("B")) == ("1", None)
    assert (there.find("A"), there.find("B")) == ("1", "1")


def test_prune_of_a_missing_folder_does_nothing(tmp_path):
    Receipts(str(tmp_path / "absent"), HERE).prune([])


def test_failed_write_raises_and_leaves_no_file(tmp_path):
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    with pytest.raises(OSError):
        Receipts(str(tmp_path / "file"), HERE).write("A", "1")
    full = tmp_path / "full"
    full.mkdir()
    receipts = Receipts(str(full), HERE)
    receipts.write("A", "1")
    (written,) = list(full.iterdir())
    written.unlink()
    written.mkdir()
    with pytest.raises(OSError):
        receipts.write("A", "1")
    assert [name for name in os.listdir(str(full)) if name.startswith(".draft")] == []


def test_a_receipt_of_another_boot_is_ignored_and_pruned(tmp_path):
    before = Receipts(str(tmp_path), HERE, lambda: "boot-1")
    before.write("A", "1", NOON)
    assert before.find("A", NOON) == "1"
    now = Receipts(str(tmp_path), HERE, lambda: "boot-2")
    assert now.find("A", NOON) is None and before.find("A", NOON) == "1"
    before.prune(["A"])
    assert len(list(tmp_path.iterdir())) == 1
    now.prune(["A"])
    assert list(tmp_path.iterdir()) == []
    now.write("A", "2", NOON)
    now.prune(["A"])
    assert now.find("A", NOON) == "2" and before.find("A", NOON) is None


def test_a_receipt_without_a_boot_is_ignored_where_boots_are_known(tmp_path):
    Receipts(str(tmp_path), HERE, lambda: "").write("A", "1")
    assert Receipts(str(tmp_path), HERE, lambda: "boot-1").find("A") is None
    assert Receipts(str(tmp_path), HERE, lambda: "").find("A") == "1"


def test_a_receipt_names_the_boot_on_windows_only(tmp_path):
    Receipts(str(tmp_path), HERE).write("A", "1")
    (path,) = tmp_path.iterdir()
    stamp = stamped_boot()
    assert json.loads(path.read_text(encoding="ascii")).get("boot", "") == stamp
    assert bool(stamp) == (sys.platform == "win32")
