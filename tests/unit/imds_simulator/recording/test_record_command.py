# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The verb record as a process: kills, signals, full disks, damaged and foreign files."""

from __future__ import annotations

import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from imds_simulator.__main__ import main
from support import simulator_process
from support.simulator.in_thread import simulator_in_thread
from support.simulator.recordings import lines_of
from support.simulator_process import PACKAGE_ROOT
from support.wait import wait_until

SCENARIO = {"groups": {"web": {"vms": {"vm1": {}}}}}


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "imds_simulator", *map(str, arguments)]


def run(*arguments: object, before: Callable[[], None] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments),
        capture_output=True,
        text=True,
        timeout=120,
        env=simulator_process.environment(),
        preexec_fn=before,
        check=False,
    )


def start_recorder(file: Path, endpoint: str) -> subprocess.Popen[str]:
    arguments = ("record", "--output", file, "--endpoint", endpoint, "--for", "1h")
    return subprocess.Popen(command(*arguments), stderr=subprocess.PIPE, text=True, env=simulator_process.environment())


def wait_for_answers(file: Path, count: int) -> None:
    wait_until(
        lambda: file.exists() and file.read_text().count('"status":') >= count, f"{count} answers in {file.name}"
    )


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with simulator_in_thread(SCENARIO, {"rate_limit": "off"}) as simulator:
        yield simulator.endpoints["vm1"]


def test_killed_recording_is_repaired_and_continued(tmp_path: Path, endpoint: str) -> None:
    file = tmp_path / "recording"
    first = start_recorder(file, endpoint)
    wait_for_answers(file, 2)
    first.kill()
    first.communicate(timeout=10)
    whole = file.read_bytes()
    # a kill in the middle of a write
    file.write_bytes(whole + b'{"time":"20')
    second = start_recorder(file, endpoint)
    wait_for_answers(file, whole.count(b'"status":') + 2)
    second.send_signal(signal.SIGTERM)
    _out, messages = second.communicate(timeout=30)
    assert second.returncode == 0 and "signal" in messages
    assert file.read_bytes().startswith(whole) and len(lines_of(file)) > whole.count(b"\n")


def test_recording_continues_without_a_reader_of_its_messages(tmp_path: Path, endpoint: str) -> None:
    recorder = start_recorder(tmp_path / "recording", endpoint)
    assert recorder.stderr is not None
    recorder.stderr.close()
    wait_for_answers(tmp_path / "recording", 2)
    recorder.send_signal(signal.SIGHUP)
    assert recorder.wait(30) == 0


def test_copied_folder_records_without_libraries_and_says_first_what_it_enables(tmp_path: Path, endpoint: str) -> None:
    shutil.copytree(PACKAGE_ROOT / "imds_simulator", tmp_path / "imds_simulator")
    blocked = "import sys; sys.modules.update(dict.fromkeys(('aiohttp', 'yaml', 'multidict', 'requests')));"
    arguments = ["record", "--output", "recording", "--endpoint", endpoint, "--for", "0.5s"]
    program = f"{blocked} from imds_simulator.__main__ import main; sys.exit(main({arguments!r}))"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0 and done.stdout == "", done.stderr
    notice, _mark, summary = done.stderr.partition("answered by")
    assert "enables Scheduled Events" in notice and "never approves" in notice and "two minutes" in notice
    assert "'compute.tags' (1)" in summary


def test_full_disk_ends_the_recording_with_its_last_whole_line(tmp_path: Path, endpoint: str) -> None:
    file = tmp_path / "recording"
    arguments = ("record", "--output", file, "--endpoint", endpoint, "--for", "0.5s")
    assert run(*arguments).returncode == 0
    before = file.read_bytes()

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        # room for the instance metadata, and for a part of the first document
        size = 2 * len(before) - 100
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    done = run(*arguments, before=limit)
    assert done.returncode == 1 and str(file) in done.stderr and "Traceback" not in done.stderr
    after = file.read_bytes()
    assert after.startswith(before) and after.endswith(b"\n") and len(after) > len(before)
    assert run(*arguments).returncode == 0 and len(lines_of(file)) > after.count(b"\n")


@pytest.mark.parametrize(
    "content", [b"notes of mine", b"notes\n", b'{"format":"imds-recording/9"}\n', b'{"format":"imds-rec', b"\xff\xfe\n"]
)
def test_file_that_is_no_recording_is_refused_unchanged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes
) -> None:
    file = tmp_path / "notes"
    file.write_bytes(content)
    file.chmod(0o644)
    for arguments in (("record", "--output", file), ("replay", file)):
        assert main([*map(str, arguments)]) == 2
        assert str(file) in capsys.readouterr().err
    assert file.read_bytes() == content and file.stat().st_mode & 0o777 == 0o644
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize(
    "arguments",
    [
        ("record",),
        ("record", "--output", "x", "--for", "never"),
        ("record", "--output", "x", "--interval", "0.1s"),
        ("record", "--output", "x", "--endpoint", "https://example.com"),
        ("record", "--output", "x", "--endpoint", "http://127.0.0.1:99999"),
        ("record", "--output", "no/such/folder/x"),
        ("record", "--output", "/dev/null"),
        ("replay", "no-such-file"),
        ("replay", "x", "--listen", "here"),
    ],
)
def test_unusable_options_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    try:
        code = main(arguments)
    except SystemExit as ended:
        code = int(ended.code or 0)
    assert code == 2 and capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
