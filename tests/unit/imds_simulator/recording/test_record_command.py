# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The verb record as a process: kills, signals, full disks, damaged and foreign files."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from imds_simulator.__main__ import main
from imds_simulator.recording.lines import Answer, Begin, End
from imds_simulator.recording.reader import read
from imds_simulator.recording.recorder import Settings
from support import simulator_process
from support.simulator.in_thread import simulator_in_thread
from support.simulator.recordings import SettableClock, record
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


def start_recorder(file: Path, endpoint: str, *more: str) -> subprocess.Popen[str]:
    arguments = ("record", "--output", file, "--endpoint", endpoint, "--for", "1h", *more)
    return subprocess.Popen(command(*arguments), stderr=subprocess.PIPE, text=True, env=simulator_process.environment())


def wait_for_answers(file: Path, count: int) -> None:
    wait_until(
        lambda: file.exists() and file.read_text().count('"kind":"answer"') >= count, f"{count} answers in {file.name}"
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
    first.wait(10)
    whole = file.read_bytes()
    # a kill in the middle of a write
    file.write_bytes(whole + b'{"n":999,"kind":"ans')
    second = start_recorder(file, endpoint)
    wait_for_answers(file, whole.count(b'"kind":"answer"') + 2)
    second.send_signal(signal.SIGTERM)
    _out, messages = second.communicate(timeout=30)
    assert second.returncode == 0 and "signal" in messages
    assert file.read_bytes().startswith(whole)
    recording = read(file)
    assert recording.problems == ()
    assert [type(each) for each in recording.lines if not isinstance(each, Answer)] == [Begin, Begin, End]
    assert [each.line for each in recording.lines] == list(range(2, len(recording.lines) + 2))


def test_recording_continues_without_a_reader_of_its_messages(tmp_path: Path, endpoint: str) -> None:
    recorder = start_recorder(tmp_path / "recording", endpoint)
    assert recorder.stderr is not None
    recorder.stderr.close()
    wait_for_answers(tmp_path / "recording", 2)
    recorder.send_signal(signal.SIGTERM)
    assert recorder.wait(30) == 0
    assert isinstance(read(tmp_path / "recording").lines[-1], End)


def test_recording_says_first_what_it_enables_and_is_private(tmp_path: Path, endpoint: str) -> None:
    done = run("record", "--output", tmp_path / "recording", "--endpoint", endpoint, "--for", "0.5s")
    assert done.returncode == 0 and done.stdout == ""
    notice = done.stderr.split("line ")[0]
    assert "enables Scheduled Events" in notice and "never approves" in notice and "two minutes" in notice
    assert (tmp_path / "recording").stat().st_mode & 0o777 == 0o600
    assert {each.method for each in read(tmp_path / "recording").answers} == {"GET"}


def test_recorder_runs_from_a_copied_folder_without_the_libraries_of_the_server(tmp_path: Path, endpoint: str) -> None:
    shutil.copytree(PACKAGE_ROOT / "imds_simulator", tmp_path / "imds_simulator")
    blocked = "import sys; sys.modules.update(dict.fromkeys(('aiohttp', 'yaml', 'multidict')));"
    arguments = ["record", "--output", "recording", "--endpoint", endpoint, "--for", "0.5s", "--anonymise"]
    program = f"{blocked} from imds_simulator.__main__ import main; sys.exit(main({arguments!r}))"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr


def test_full_disk_ends_the_recording_with_its_last_whole_line(tmp_path: Path, endpoint: str) -> None:
    file = tmp_path / "recording"
    arguments = ("record", "--output", file, "--endpoint", endpoint, "--for", "0.5s")
    assert run(*arguments).returncode == 0
    before = file.read_bytes()

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        # room for the start of a run, and for a part of the first answer
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 500, len(before) + 500))

    done = run(*arguments, before=limit)
    assert done.returncode == 1 and str(file) in done.stderr and "Traceback" not in done.stderr
    after = file.read_bytes()
    assert after.startswith(before) and after.endswith(b"\n") and len(after) > len(before)
    assert run(*arguments).returncode == 0
    assert read(file).problems == ()


def test_second_recorder_of_one_file_is_refused(tmp_path: Path, endpoint: str) -> None:
    file = tmp_path / "recording"
    first = start_recorder(file, endpoint)
    try:
        wait_for_answers(file, 1)
        done = run("record", "--output", file, "--endpoint", endpoint, "--for", "1s")
        assert done.returncode == 2 and "another process" in done.stderr
    finally:
        first.terminate()
        first.communicate(timeout=30)


@pytest.mark.parametrize(
    "content",
    [
        b"notes of mine",
        b"notes\n",
        b'{"format":"other"}\n',
        b'{"format":"imds-recording","version":9}\n',
        # a header that is cut off before its line end
        b'{"format":"imds-recording","version":1,"created":"2026-01-31T10:00:00.000Z","endpoint":"","anonymised":false}',
        b"\xff\xfe\n",
    ],
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


@pytest.mark.parametrize(
    "arguments",
    [
        ("record",),
        ("record", "--output", "x", "--for", "never"),
        ("record", "--output", "x", "--interval", "0.1s"),
        ("record", "--output", "x", "--endpoint", "https://example.com"),
        ("record", "--output", "x", "--endpoint", "http://127.0.0.1:99999"),
        ("record", "--output", "x", "--api-version", "2020&format=text"),
        ("record", "--output", "no/such/folder/x"),
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


def test_damaged_lines_are_named_and_the_rest_is_used(tmp_path: Path, endpoint: str) -> None:
    file = tmp_path / "recording"
    record(file, endpoint, SettableClock(), Settings(20, 1, ("2020-07-01",), probe=True))
    lines = file.read_bytes().splitlines(keepends=True)
    polls = [number for number, line in enumerate(lines) if b'"poll"' in line]
    assert b"same_as" not in lines[polls[0]] and b"same_as" in lines[polls[1]]
    lines[polls[0]] = b"\x00\xff" + lines[polls[0]][:20] + b"\n"
    lines[-1] = lines[-1][:-5]
    refusal = next(number for number, line in enumerate(lines) if b'"status":400' in line)
    lines[refusal] = lines[refusal].replace(b'"status":400', b'"status":40')
    file.write_bytes(b"".join(lines))
    found = read(file)
    named = {problem.split(": ")[0] for problem in found.problems}
    # the later polls refer to the damaged one
    damaged = (polls[0] + 1, polls[1] + 1, refusal + 1, len(lines))
    assert {f"{file}:{number}" for number in damaged} <= named
    assert len(found.problems) == len(named) and len(found.answers) > 20


def test_empty_recording_is_unusable(tmp_path: Path) -> None:
    file = tmp_path / "recording"
    file.write_bytes(b"")
    assert main(["replay", str(file)]) == 2
    assert os.path.getsize(file) == 0
