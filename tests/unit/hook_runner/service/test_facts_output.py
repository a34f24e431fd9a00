# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The file of facts: when it is written, how long it holds, and errors."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from hook_runner.clock import boot_id
from hook_runner.log import Log
from hook_runner.permissions import trusted_owners
from hook_runner.reporting import facts
from hook_runner.service.facts_output import RETRY_INTERVAL, FactsOutput, mark_stale

BOOT = boot_id().decode("ascii")


class Made:
    """An output with a clock of the test, to a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.now, self.path, self.log = 1000.0, folder / "facts.d" / "azure_scheduled_events.fact", io.StringIO()
        self.path.parent.mkdir()
        self.output = FactsOutput(
            str(self.path), 300.0, trusted_owners(), Log("debug", self.log), lambda: self.now, lambda: self.now
        )

    def content(self) -> dict[str, Any]:
        data: dict[str, Any] = json.loads(self.path.read_text())
        return data


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return Made(tmp_path)


def test_facts_have_their_validity(made: Made) -> None:
    made.output.write({"pending": False})
    assert made.content() == {
        "pending": False,
        "written_at": "1970-01-01T00:16:40Z",
        "stale_after": 300,
        "valid_until": "1970-01-01T00:21:40Z",
        "valid_until_epoch": 1300,
        "boot_id": BOOT,
        "stale": False,
    }
    assert made.path.stat().st_mode & 0o777 == 0o644


def test_they_are_written_when_they_change_and_before_they_become_stale(made: Made) -> None:
    made.output.write({"pending": False})
    made.now += 50
    made.output.write({"pending": False})
    assert made.content()["valid_until_epoch"] == 1300 and made.output.due_in() == 50
    made.output.write({"pending": True})
    assert (made.content()["pending"], made.content()["valid_until_epoch"]) == (True, 1350)
    made.now += 100
    made.output.write({"pending": True})
    assert made.content()["valid_until_epoch"] == 1450


def test_an_unsafe_or_missing_folder_is_logged_once_and_tried_again(made: Made) -> None:
    made.path.parent.chmod(0o777)
    for _time in range(3):
        made.output.write({"pending": False})
    assert not made.path.exists() and made.log.getvalue().count("other users could replace it") == 1
    made.path.parent.chmod(0o755)
    made.now += RETRY_INTERVAL
    made.output.write({"pending": False})
    assert made.path.exists() and "is written again" in made.log.getvalue()


def test_the_end_of_the_daemon_marks_them_stale(made: Made) -> None:
    made.output.close()
    assert not made.path.exists()
    made.output.write({"pending": True})
    made.output.close()
    assert (made.content()["stale"], made.content()["pending"]) == (True, True)
    mark_stale(str(made.path))
    assert made.content()["stale"] is True


def test_a_file_that_others_can_replace_is_not_marked(made: Made) -> None:
    made.output.write({"events": []})
    before = made.path.read_bytes()
    made.path.parent.chmod(0o777)
    with pytest.raises(OSError, match="other users could replace it"):
        mark_stale(str(made.path))
    assert made.path.read_bytes() == before


@pytest.mark.parametrize(
    ("now", "boot", "is_stale"),
    [(1000.0, BOOT, False), (1299.0, BOOT, False), (1300.0, BOOT, True), (900.0, BOOT, True), (1000.0, "other", True)],
)
def test_a_reader_finds_old_facts_of_a_killed_daemon_or_another_boot(
    made: Made, now: float, boot: str, is_stale: bool
) -> None:
    made.output.write({})
    assert facts.read(str(made.path), now, boot)["stale"] is is_stale


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"valid_until_epoch": "x", "stale_after": 1}', b"\xff"])
def test_another_file_is_refused_and_not_changed(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.fact"
    path.write_bytes(content)
    with pytest.raises(ValueError):
        mark_stale(str(path))
    assert path.read_bytes() == content
