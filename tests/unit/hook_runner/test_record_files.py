# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The files of the records, and the history that is read from them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hook_runner import record_files
from hook_runner.maintenance.record import Maintenance, State
from hook_runner.record_files import HISTORY, OPEN, name_of
from support.daemon.record_factory import make_event, make_maintenance


def write(directory: Path, *numbers: int, is_open: bool = False) -> None:
    (directory / HISTORY).mkdir(exist_ok=True)
    for number in numbers:
        path = directory / (OPEN if is_open else name_of(number))
        record_files.write(str(path), make_maintenance(number, is_open))


@pytest.mark.parametrize(
    "odd",
    ["", "\ud800", "a\x00b", "line\nline\r\n", "\u2028 \x1b[31m", "\U0001f600" * 2000],
    ids=["empty", "surrogate", "nul", "lines", "control", "long"],
)
def test_odd_texts_are_read_as_they_were_written(tmp_path: Path, odd: str) -> None:
    maintenance = make_maintenance()
    text = odd.replace("\ud800", "\\ud800")  # as documents are read
    maintenance.events[0].event = make_event("E" + text, description=text, resources=(text, "vm1"), source=text)
    maintenance.given_up_by = maintenance.runs[0].output = maintenance.runs[0].name = odd
    maintenance.timeline[0] = maintenance.timeline[0]._replace(detail=odd)
    path = str(tmp_path / "file")
    record_files.write(path, maintenance)
    assert record_files.read(Maintenance, path) == maintenance


def test_history_is_newest_first_and_limited(tmp_path: Path) -> None:
    write(tmp_path, 10, 20)
    write(tmp_path, 30, is_open=True)
    (tmp_path / HISTORY / "notes.txt").write_text("of an administrator")
    assert [each.number for each in record_files.stored(str(tmp_path)).maintenances] == [30, 20, 10]
    assert [each.number for each in record_files.stored(str(tmp_path), 2).maintenances] == [30, 20]


def test_history_has_a_maintenance_that_is_closed_between_two_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, 10)
    write(tmp_path, 20, is_open=True)
    lstat = os.lstat

    def close_before_first_read(path: str) -> os.stat_result:
        if (tmp_path / OPEN).exists():
            (tmp_path / OPEN).rename(tmp_path / name_of(20))
        return lstat(path)

    monkeypatch.setattr(os, "lstat", close_before_first_read)
    assert [each.number for each in record_files.stored(str(tmp_path)).maintenances] == [20, 10]


def test_history_leaves_out_and_names_what_cannot_be_read(tmp_path: Path) -> None:
    write(tmp_path, 10, 20)
    (tmp_path / name_of(10)).write_text('{"version": 1, "number"')
    found = record_files.stored(str(tmp_path))
    assert [each.number for each in found.maintenances] == [20]
    (sentence,) = found.unreadable.values()
    assert name_of(10) in sentence and str(tmp_path) in sentence


def test_history_without_records_is_empty_and_without_a_directory_an_error(tmp_path: Path) -> None:
    assert record_files.stored(str(tmp_path)) == ([], State(), {}, None)
    with pytest.raises(FileNotFoundError):
        record_files.stored(str(tmp_path / "absent"))
