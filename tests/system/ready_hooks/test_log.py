# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The ready hook log with the real journal of systemd, files and a full disk."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from support.ready_hooks.workload_host import RECORDS, WorkloadHost
from support.wait import wait_until

pytestmark = pytest.mark.all

FILE = "/var/log/azure-events.jsonl"
OPTIONS = {"file": FILE}
EVENT = {
    "ID": "first",
    "TYPE": "Reboot",
    "RESOURCE": "web1",
    "DESCRIPTION": 'a "quoted" text\nand a second line',
    "SECONDS_LEFT": "899",
    "DURATION": "-1",
}


@pytest.fixture
def host(workload_host: Callable[[str], WorkloadHost]) -> Iterator[WorkloadHost]:
    host = workload_host("web1")
    yield host
    host.shell(f"rm -rf {RECORDS} {FILE}* /var/log/full; journalctl --rotate --vacuum-time=1us --quiet")


def lines(host: WorkloadHost, path: str = FILE) -> list[dict[str, Any]]:
    return [json.loads(line) for line in host.shell(f"cat {path}").splitlines()]


def journal(host: WorkloadHost, number: int) -> list[dict[str, Any]]:
    def found() -> list[dict[str, Any]]:
        text = host.shell("journalctl --sync; journalctl --output=json --no-pager SYSLOG_IDENTIFIER=azure-event")
        entries = [json.loads(line) for line in text.splitlines()]
        return entries if len(entries) >= number else []

    return wait_until(found, f"{number} lines in the journal")


def test_log_of_all_stages_is_in_journal_and_file_with_outcome_and_duration(host: WorkloadHost) -> None:
    for stage in ("prepare", "started"):
        assert host.hook("log", stage, OPTIONS, event=EVENT).returncode == 0
    done = host.hook("log", "recover", OPTIONS, event={**EVENT, "OUTCOME": "completed", "SECONDS_LEFT": ""})
    assert done.returncode == 0
    written = lines(host)
    assert [(line["stage"], line["outcome"], line["seconds_left"]) for line in written] == [
        ("prepare", "", 899),
        ("started", "", 899),
        ("recover", "completed", None),
    ]
    assert 0 <= written[2]["duration"] < 60
    assert written[0]["description"] == EVENT["DESCRIPTION"]
    assert written[0]["expected_duration"] is None
    first, _second, third = journal(host, 3)
    assert first["AZURE_EVENT_DESCRIPTION"] == EVENT["DESCRIPTION"]
    assert (first["AZURE_EVENT_ID"], first["AZURE_EVENT_STAGE"], first["PRIORITY"]) == ("first", "prepare", "5")
    assert first["MESSAGE"].splitlines() == [written[0]["text"]]
    assert third["AZURE_EVENT_OUTCOME"] == "completed"
    assert host.record("log") is None
    assert host.shell(f"stat -c %a {FILE}").strip() == "640"


def test_emergency_is_a_warning_in_the_journal(host: WorkloadHost) -> None:
    host.hook("log", "emergency", {}, event=EVENT)
    assert [line["PRIORITY"] for line in journal(host, 1)] == ["4"]


def test_repeat_is_marked_and_recover_reports_all_prepared_events_once(host: WorkloadHost) -> None:
    for event_id in ("first", "first", "second"):
        host.hook("log", "prepare", OPTIONS, event={**EVENT, "ID": event_id})
    host.hook("log", "started", OPTIONS, event={**EVENT, "ID": "first"})
    for _again in range(2):
        done = host.hook("log", "recover", OPTIONS, event={"ID": "second", "OUTCOME": "unknown"})
        assert done.returncode == 0
    written = lines(host)
    assert [line["repeated"] for line in written[:4]] == [False, True, False, False]
    assert [(line["event_id"], line["outcome"], line["resource"]) for line in written[4:]] == [
        ("first", "completed", "web1"),
        ("second", "unknown", "web1"),
    ]


def test_full_disk_leaves_whole_lines_and_does_not_fail(host: WorkloadHost) -> None:
    path = "/var/log/full/events.jsonl"
    host.shell("mkdir /var/log/full && mount -t tmpfs -o size=16k full /var/log/full")
    try:
        options = {"file": path, "journal": False}
        assert host.hook("log", "prepare", options, event=EVENT).returncode == 0
        host.shell("dd if=/dev/zero of=/var/log/full/rest bs=4k || true")
        long = {**EVENT, "DESCRIPTION": "x" * 1900}
        results = [host.hook("log", "started", options, event={**long, "ID": f"{number}"}) for number in range(4)]
        assert {result.returncode for result in results} == {0}
        assert "No space left" in results[-1].stderr
        assert host.shell(f"tail -c 1 {path} | od -An -c").split() == ["\\n"]
        assert all(json.loads(line) for line in host.shell(f"cat {path}").splitlines() if line)
    finally:
        host.shell("umount /var/log/full")


def test_read_only_state_directory_does_not_prevent_the_line(host: WorkloadHost) -> None:
    host.shell("mkdir /run/read-only && mount -t tmpfs -o ro none /run/read-only")
    try:
        options = {**OPTIONS, "state_directory": "/run/read-only/records"}
        done = host.hook("log", "prepare", options, event=EVENT)
        assert (done.returncode, "Read-only file system" in done.stderr, len(lines(host))) == (0, True, 1)
    finally:
        host.shell("umount /run/read-only && rmdir /run/read-only")


def test_line_after_a_power_cut_is_whole(host: WorkloadHost) -> None:
    host.write(FILE, '{"event_id": "cu')
    host.hook("log", "prepare", OPTIONS, event=EVENT)
    cut, whole = host.shell(f"cat {FILE}").splitlines()
    assert (cut, json.loads(whole)["event_id"]) == ('{"event_id": "cu', "first")


def test_locked_file_is_waited_for_no_longer_than_the_time_limit(host: WorkloadHost) -> None:
    host.write(FILE, "")
    host.shell(f"systemd-run --quiet --unit=holder flock {FILE} sleep infinity")
    try:
        wait_until(lambda: host.run("flock", "--nonblock", FILE, "true", check=False).returncode == 1, "the lock")
        done = host.hook("log", "prepare", OPTIONS, event=EVENT, seconds=1)
        assert (done.returncode, lines(host)) == (0, [])
        assert "locked" in done.stderr
    finally:
        host.shell("systemctl stop holder")


def test_renamed_file_is_made_again(host: WorkloadHost) -> None:
    host.hook("log", "prepare", OPTIONS, event=EVENT)
    host.shell(f"mv {FILE} {FILE}.1")
    host.hook("log", "started", OPTIONS, event=EVENT)
    assert [line["stage"] for line in (*lines(host, FILE + ".1"), *lines(host))] == ["prepare", "started"]


@pytest.mark.parametrize("make", ["ln -s /etc/passwd", "mkfifo", "mkdir"])
def test_path_that_is_not_a_file_is_refused(host: WorkloadHost, make: str) -> None:
    host.shell(f"{make} {FILE}")
    assert host.hook("log", "prepare", OPTIONS, event=EVENT).returncode == 0
    found = host.hook("log", "check", OPTIONS)
    assert (found.returncode, FILE in found.stderr) == (1, True)
    assert "azure" not in host.shell("cat /etc/passwd")


def test_check_reports_a_missing_folder_and_a_missing_journal(host: WorkloadHost) -> None:
    assert host.hook("log", "check", OPTIONS).returncode == 0
    assert host.hook("log", "check", {"file": "/var/log/missing/events.jsonl"}).returncode == 1
    command = host.hook_command("log", "check", {})
    hidden = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /run/systemd/journal && exec "$@"', "sh", *command]
    assert host.run(*hidden, check=False).returncode == 1


def test_dry_run_writes_nothing(host: WorkloadHost) -> None:
    done = host.hook("log", "prepare", {**OPTIONS, "dry_run": True}, event=EVENT)
    assert done.stdout.count("would ") == 2
    assert host.record("log") is None
    with pytest.raises(subprocess.CalledProcessError):
        lines(host)
