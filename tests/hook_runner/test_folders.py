# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The daemon's own folders: refused where others can write, and given to a group only as far as they are the journal's."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Callable

import pytest
from daemon_process import Daemon
from hook_runner.folders import share_journal
from simulated_azure import Azure

MakeDaemon = Callable[..., Daemon]

NOBODY = 65534

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


@pytest.mark.parametrize("name, key", [("state", "journal"), ("run", "run_directory")])
@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o775])
def test_a_folder_that_others_can_write_is_refused(azure: Azure, make_daemon: MakeDaemon, name: str, key: str, mode: int) -> None:
    me = make_daemon()
    folder = me.rig.folder / name
    folder.mkdir()
    folder.chmod(mode)
    done = me.command("run")
    assert done.returncode == 78 and key + ": the service does not work in the folder" in done.stderr and list(folder.iterdir()) == []


@needs_root
@pytest.mark.parametrize("name", ["state", "run"])
def test_a_folder_of_somebody_else_is_refused(azure: Azure, make_daemon: MakeDaemon, name: str) -> None:
    me = make_daemon()
    folder = me.rig.folder / name
    folder.mkdir(0o755)
    os.chown(folder, NOBODY, -1)
    done = me.command("run")
    assert done.returncode == 78 and "belongs to user %d" % NOBODY in done.stderr


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    folder = tmp_path / "state"
    folder.mkdir(0o750)
    for suffix in ("", "-wal", "-shm", ".corrupt-20261121T120000Z"):
        (folder / ("journal.db" + suffix)).touch(0o640)
    return folder / "journal.db"


def groups(journal: Path) -> list[int]:
    return [os.stat(path).st_gid for path in (journal.parent, journal, str(journal) + "-wal", str(journal) + "-shm")]


@needs_root
def test_the_journal_is_given_to_a_group_and_back(journal: Path) -> None:
    share_journal(str(journal), NOBODY)
    assert groups(journal) == [NOBODY] * 4
    share_journal(str(journal), None)
    assert groups(journal) == [os.getegid()] * 4


@needs_root
def test_a_folder_that_holds_other_things_is_left_as_it_is(journal: Path) -> None:
    (journal.parent / "something-else").touch()
    with pytest.raises(PermissionError, match="holds other files too"):
        share_journal(str(journal), NOBODY)
    assert groups(journal) == [os.getegid()] + [NOBODY] * 3
    journal.parent.chmod(0o755)
    share_journal(str(journal), NOBODY)
    os.chown(journal.parent, -1, NOBODY)
    share_journal(str(journal), None)
    assert groups(journal) == [NOBODY] * 4


def test_files_that_are_not_there_are_no_error(tmp_path: Path) -> None:
    share_journal(str(tmp_path / "journal.db"), os.getegid())
    share_journal(str(tmp_path / "journal.db"), None)


@needs_root
def test_the_folder_that_systemd_made_for_the_service_is_given_whatever_it_holds(journal: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (journal.parent / "other").write_text("x")
    monkeypatch.setenv("STATE_DIRECTORY", str(journal.parent))
    share_journal(str(journal), NOBODY)
    assert journal.parent.stat().st_gid == NOBODY
