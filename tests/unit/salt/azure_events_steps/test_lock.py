# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The lock between the jobs of a minion, and a record that cannot be read."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from azure_events_steps import lock
from azure_events_steps.configuration import parse_configuration
from azure_events_steps.minion import Minion
from azure_events_steps.record import PREPARED, Reason, Record, RecordFile
from azure_events_steps.status import status
from azure_events_watch import durable_file
from azure_events_watch.prepared_events import PreparedEvents
from support.salt.steps import raises

NAME = lock.PREPARATION
RECORD = Record(PREPARED, "boot", 1, "digest", "2026-11-21T12:00:00Z", "", (Reason("C7061BAC"),))


@pytest.mark.parametrize("note", ["C7061BAC", "", "two\nlines", "\u00fc\u6f22\x1a\udc80"])
def test_note_is_read_while_the_lock_is_held(tmp_path: Path, note: str) -> None:
    assert lock.holder_of(str(tmp_path), NAME) is None
    with lock.acquire(str(tmp_path), NAME, 1) as held:
        assert held is not None
        held.note("a longer note of the holder before")
        held.note(note)
        assert lock.holder_of(str(tmp_path), NAME) == note.encode("utf-8", "backslashreplace").decode()
    assert lock.holder_of(str(tmp_path), NAME) is None


@pytest.mark.parametrize(
    "read",
    [Minion.readable_record, lambda minion: minion.readable_record(quarantine=True), partial(status, problem="-")],
)
def test_record_that_cannot_be_read_now_is_not_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: Callable[[Minion], object]
) -> None:
    minion = Minion(str(tmp_path), parse_configuration(None), raises)
    minion.file.write(RECORD)
    watched = PreparedEvents(minion.file.path)

    def refuse(*_arguments: object, **_options: object) -> None:
        raise OSError("Too many open files")

    with monkeypatch.context() as system, pytest.raises(OSError, match="Too many"):
        system.setattr(os, "open", refuse)
        assert watched.events() == ()
        read(minion)
    assert minion.readable_record() == RECORD and watched.events() == RECORD.events


def test_events_that_are_over_stay_noted_while_they_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = RecordFile(str(tmp_path))
    file.add_gone(RECORD.events)

    def refuse(*_arguments: object) -> None:
        raise OSError("Too many open files")

    with monkeypatch.context() as system, pytest.raises(OSError, match="Too many"):
        system.setattr(durable_file, "read", refuse)
        file.add_gone(RECORD._replace(reasons=(Reason("A"),)).events)
    assert file.gone() == ("c7061bac",)
