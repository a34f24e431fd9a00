# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The daemon's own folders: refused where others can write, and made only where others cannot interfere."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from hook_runner.permissions import location_problem, make_folder
from support.daemon.daemon_process import MakeDaemon
from support.daemon.simulated_azure import Azure

NOBODY = 65534

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


@pytest.mark.parametrize("name, key", [("state", "state_directory"), ("run", "run_directory")])
@pytest.mark.parametrize("mode", [0o777, 0o1777])
def test_a_folder_that_others_can_write_is_refused(
    azure: Azure, make_daemon: MakeDaemon, name: str, key: str, mode: int
) -> None:
    vm = make_daemon()
    folder = vm.harness.folder / name
    folder.mkdir()
    folder.chmod(mode)
    done = vm.command("run")
    assert done.returncode == 78 and key + ": the folder" in done.stderr and list(folder.iterdir()) == []


@pytest.mark.parametrize("name, key", [("state", "state_directory"), ("run", "run_directory")])
def test_a_file_in_the_place_of_a_folder_is_refused(azure: Azure, make_daemon: MakeDaemon, name: str, key: str) -> None:
    vm = make_daemon()
    place = vm.harness.folder / name
    place.touch()
    done = vm.command("run")
    assert done.returncode == 78 and f"{key}: the folder {place} is not safe: {place} is not a folder" in done.stderr
    code, found = vm.data("check", "--offline")
    texts = [each["text"] for each in found["findings"] if each["what"] == key]
    assert (code, texts) == (1, [f"{place} is not a folder"])


@needs_root
@pytest.mark.parametrize("name, key", [("state", "state_directory"), ("run", "run_directory")])
def test_a_folder_that_is_not_there_is_not_made_where_others_decide(
    azure: Azure, make_daemon: MakeDaemon, tmp_path_factory: pytest.TempPathFactory, name: str, key: str
) -> None:
    vm = make_daemon()
    # the path of a run directory has a limit, and that of tmp_path has the name of the test
    above = tmp_path_factory.mktemp("home")
    (above / "cache").mkdir(parents=True)
    os.chown(above, NOBODY, -1)
    place = above / "cache" / "not" / "there" / name
    vm.harness.configure(**{key: str(place)})
    code, found = vm.data("check", "--offline")
    assert code == 1 and [each["severity"] for each in found["findings"] if each["what"] == key] == ["error"], found
    done = vm.command("run")
    assert done.returncode == 78 and key + f": the folder {place} is not safe" in done.stderr
    assert list((above / "cache").iterdir()) == []


@needs_root
@pytest.mark.parametrize("mode, owner", [(0o755, NOBODY), (0o777, 0), (0o775, 0)])
def test_location_below_a_folder_that_others_can_change_is_not_safe(tmp_path: Path, mode: int, owner: int) -> None:
    (tmp_path / "home" / "cache").mkdir(parents=True)
    (tmp_path / "home").chmod(mode)
    os.chown(tmp_path / "home", owner, -1)
    for path in ("home/cache", "home/cache/not/there"):
        assert str(tmp_path / "home") in (location_problem(str(tmp_path / path)) or "")


def test_a_folder_in_one_that_is_sticky_is_made_and_is_ours(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    path = tmp_path / "a" / "b"
    assert location_problem(str(path)) is None
    make_folder(str(path), 0o700)
    assert [stat.S_IMODE(each.stat().st_mode) for each in (path, path.parent)] == [0o700, 0o755]
    make_folder(str(path), 0o700)


@needs_root
def test_a_folder_that_another_user_made_first_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    (tmp_path / "a").mkdir()
    os.chown(tmp_path / "a", NOBODY, -1)
    for path in (tmp_path / "a", tmp_path / "a" / "b"):
        with pytest.raises(OSError, match=f"belongs to user {NOBODY}"):
            make_folder(str(path), 0o700)
    assert list((tmp_path / "a").iterdir()) == []


@needs_root
def test_a_race_with_another_user_is_lost_without_harm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between check and creation, another user creates a link or a folder at the path."""
    tmp_path.chmod(0o1777)
    target = tmp_path.parent / "target"
    target.mkdir()
    make = os.mkdir

    def with_rival(rival: Callable[[Path], object]) -> Callable[..., None]:
        def mkdir(name: str, mode: int, dir_fd: int) -> None:
            if name == "a" and not os.path.lexists(tmp_path / "a"):
                rival(tmp_path / "a")
            make(name, mode, dir_fd=dir_fd)

        return mkdir

    def theirs(path: Path) -> None:
        make(path)
        os.chown(path, NOBODY, -1)

    for rival in (theirs, lambda path: path.symlink_to(target)):
        monkeypatch.setattr(os, "mkdir", with_rival(rival))
        with pytest.raises(OSError):
            make_folder(str(tmp_path / "a" / "b"), 0o700)
        monkeypatch.undo()
        assert list(target.iterdir()) == []
        if (tmp_path / "a").is_symlink():
            (tmp_path / "a").unlink()
        else:
            assert list((tmp_path / "a").iterdir()) == []
            (tmp_path / "a").rmdir()


def test_a_link_that_leads_nowhere_is_refused(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "absent")
    assert "cannot be examined" in (location_problem(str(tmp_path / "link" / "x")) or "")


@needs_root
def test_metrics_are_not_written_where_others_could_put_another_folder(azure: Azure, make_daemon: MakeDaemon) -> None:
    vm = make_daemon()
    folder = vm.harness.folder / "home" / "metrics"
    folder.mkdir(parents=True)
    os.chown(folder.parent, NOBODY, -1)
    vm.harness.configure(metrics_file=str(folder / "our.prom"))
    code, found = vm.data("check", "--offline")
    assert code == 1 and [each["severity"] for each in found["findings"] if each["what"] == "metrics"] == ["error"]
    vm.start(first="from hook_runner.reporting import metrics; metrics.METRICS_INTERVAL = 0.1")
    assert vm.times_logged("metrics_file: nothing is written:") == 1
    vm.stop()
    assert list(folder.iterdir()) == []
    os.chown(folder.parent, 0, -1)
    os.chown(folder, NOBODY, -1)
    vm.start(first="from hook_runner.reporting import metrics; metrics.METRICS_INTERVAL = 0.1")
    vm.wait(lambda: [each.name for each in folder.iterdir()] == ["our.prom"])


def test_a_folder_of_hooks_that_others_could_make_is_an_error(make_daemon: MakeDaemon) -> None:
    vm = make_daemon()
    home = vm.harness.folder / "home"
    home.mkdir()
    home.chmod(0o777)
    vm.harness.configure(hooks_directory=str(home / "hooks.d"))
    code, found = vm.data("check", "--offline", "--hooks-directory", str(vm.harness.folder / "draft"))
    assert code == 1 and [each["what"] for each in found["findings"] if each["severity"] == "error"] == ["hooks"]
