# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The ready hook log, and its page, with the real journal of systemd, files and a full disk."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.ready_hooks.printed_play import entries, printed_play
from support.ready_hooks.workload_host import RECORDS, WorkloadHost
from support.recipes.printed import COMMAND, printed_in
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


def test_line_after_a_power_cut_is_whole(host: WorkloadHost) -> None:
    host.write(FILE, '{"event_id": "cu')
    host.hook("log", "prepare", OPTIONS, event=EVENT)
    cut, whole = host.shell(f"cat {FILE}").splitlines()
    assert (cut, json.loads(whole)["event_id"]) == ('{"event_id": "cu', "first")


def test_renamed_file_is_made_again(host: WorkloadHost) -> None:
    host.hook("log", "prepare", OPTIONS, event=EVENT)
    host.shell(f"mv {FILE} {FILE}.1")
    host.hook("log", "started", OPTIONS, event=EVENT)
    assert [line["stage"] for line in (*lines(host, FILE + ".1"), *lines(host))] == ["prepare", "started"]


def test_log_of_all_stages_is_in_journal_and_file_with_outcome_and_duration(host: WorkloadHost) -> None:
    for stage in ("prepare", "prepare", "started"):
        assert host.hook("log", stage, OPTIONS, event=EVENT).returncode == 0
    for _again in range(2):
        done = host.hook("log", "recover", OPTIONS, event={**EVENT, "OUTCOME": "completed", "SECONDS_LEFT": ""})
        assert done.returncode == 0
    written = lines(host)
    assert [(line["stage"], line["repeated"], line["outcome"], line["seconds_left"]) for line in written] == [
        ("prepare", False, "", 899),
        ("prepare", True, "", 899),
        ("started", False, "", 899),
        ("recover", False, "completed", None),
    ]
    assert 0 <= written[3]["duration"] < 60
    assert written[0]["description"] == EVENT["DESCRIPTION"]
    assert written[0]["expected_duration"] is None
    first, *_others, last = journal(host, 4)
    assert first["AZURE_EVENT_DESCRIPTION"] == EVENT["DESCRIPTION"]
    assert (first["AZURE_EVENT_ID"], first["AZURE_EVENT_STAGE"], first["PRIORITY"]) == ("first", "prepare", "5")
    assert first["MESSAGE"].splitlines() == [written[0]["text"]]
    assert last["AZURE_EVENT_OUTCOME"] == "completed"
    assert host.record("log") is None
    assert host.shell(f"stat -c %a {FILE}").strip() == "640"


def test_check_reports_a_missing_folder_and_a_missing_journal(host: WorkloadHost) -> None:
    assert host.hook("log", "check", OPTIONS).returncode == 0
    assert host.hook("log", "prepare", {**OPTIONS, "dry_run": True}, event=EVENT).stdout.count("would ") == 2
    assert (host.host.file(FILE).exists(), host.record("log")) == (False, None)
    assert host.hook("log", "check", {"file": "/var/log/missing/events.jsonl"}).returncode == 1
    command = host.hook_command("log", "check", {})
    hidden = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /run/systemd/journal && exec "$@"', "sh", *command]
    assert host.run(*hidden, check=False).returncode == 1


def test_printed_play_logs_an_event(host: WorkloadHost, tmp_path: Path) -> None:
    (entry,) = entries("log")
    printed = printed_in("docs/ready-hooks/log.md")
    (example,) = [json.loads(block.text) for block in printed if block.language == "json"]
    with printed_play("log", tmp_path, host) as play:
        play.apply()
        event_id = play.prepare("Redeploy")
        play.recover()
        written = lines(host, entry["file"])
        assert [line["event_id"] for line in written] == [event_id] * len(written)
        assert (written[0]["stage"], written[-1]["stage"]) == ("prepare", "recover")
        assert list(written[-1]) == list(example)
        host.run("journalctl", "--sync")
        for command in (block.text for block in printed if block.kind == COMMAND):
            assert event_id in host.run(*shlex.split(command), "--output", "json").stdout
