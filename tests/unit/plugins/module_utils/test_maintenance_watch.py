# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: GPL-3.0-or-later
"""When a host that is prepared for events may recover."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import datetime, timedelta, timezone

import pytest
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils._maintenance_note import merged
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils._maintenance_watch import (
    RUN_VARIABLE,
    MaintenanceWatch,
    is_due,
    processes_of,
    read_expected,
)
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events import (
    Selection,
    parse_document,
)
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.session import (
    ConnectionOptions,
    ImdsSession,
)
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.tracking import (
    GONE_AFTER,
)
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.transport import (
    Response,
)

NOON = datetime(2026, 11, 21, 12, tzinfo=timezone.utc)


def event(event_id, status="Scheduled", minutes=10, resources=("vm1",), event_type="Reboot"):
    not_before = (NOON + timedelta(minutes=minutes)).strftime("%a, %d %b %Y %H:%M:%S GMT")
    return {
        "EventId": event_id,
        "EventType": event_type,
        "EventStatus": status,
        "NotBefore": "" if status == "Started" else not_before,
        "ResourceType": "VirtualMachine",
        "Resources": resources if resources is None else list(resources),
    }


def document(*events):
    return parse_document(json.dumps({"DocumentIncarnation": 1, "Events": list(events)}))._replace(server_time=NOON)


class Backends:
    """IMDS in virtual time: each answer is that of another backend, and the last one is repeated."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.now = 0.0
        self.requests_sent = 0

    def exchange(self, request, total, rest):
        self.requests_sent += 1
        events = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return Response(200, {}, json.dumps({"DocumentIncarnation": 1, "Events": events}).encode())

    def sleep(self, seconds):
        self.now += seconds

    def read(self, *expected):
        options = ConnectionOptions("http://127.0.0.1", ("2020-07-01",), "VM1", 130.0)
        imds = ImdsSession(options, clock=lambda: self.now, sleep=self.sleep, transport=lambda *dummy: self)
        return [listed.event_id for listed in read_expected(imds, False, expected).events]


@pytest.mark.parametrize(
    ("answers", "found", "seconds"),
    [
        ([[event("A")]], ["A"], 0),
        # slower backends lack the event, or this VM in it
        ([[], [event("A")]], ["A"], 0),
        ([[], [], [event("A")]], ["A"], GONE_AFTER),
        ([[event("A", resources=["vm2"])], [event("A", resources=["vm2", "vm1"])]], ["A"], 0),
        ([[]], [], GONE_AFTER),
        ([[event("A", resources=["vm2"])]], ["A"], GONE_AFTER),
        # an entry that cannot be read may be the event, for ever
        ([[{}]], [], 10),
    ],
)
def test_expected_event_is_read_until_it_is_listed_or_surely_absent(answers, found, seconds):
    backends = Backends(*answers)
    assert (backends.read({"event_id": "a", "resources": ["vm1", "vm2"]}), backends.now) == (found, seconds)


def test_event_that_no_reporter_has_for_this_vm_is_not_awaited():
    backends = Backends([event("B")])
    assert backends.read({"event_id": "a", "resources": ["vm2"]}) == ["B"] and backends.requests_sent == 1


NOTED = {"event_id": "A", "status": "Scheduled", "resources": ["vm1"]}


class Held:
    """A watch of the events of a note, by default event A, and the events that it has added to the note.

    Each document is requested GONE_AFTER seconds after the one before.
    """

    def __init__(self, *note, types=None):
        self.busy = []
        self.added = []
        self.now = 0.0
        self.watch = MaintenanceWatch(
            Selection.parse({"types": types}),
            1800,
            note or [NOTED],
            lambda: "vm1",
            lambda: self.busy,
            self.added.extend,
        )

    def ended(self, *events):
        self.now += GONE_AFTER
        read = document(*events)._replace(sent_at=self.now, sent_by=self.now)
        return self.watch.ended(self.watch.tracker.observe(read))


def test_events_are_over_after_two_documents_without_them():
    held = Held()
    assert [held.ended(event("a")), held.ended(), held.ended()] == [False, False, True]
    assert [held.ended(event("A")), held.ended(), held.ended(event("A")), held.ended()] == [False, False, False, False]


@pytest.mark.parametrize("note", [[], [dict(NOTED, resources=[])]])
def test_one_document_is_never_enough(note):
    watch = MaintenanceWatch(Selection.parse({}), 1800, note, lambda: "vm1", list, list)
    observe = watch.tracker.observe
    assert not watch.ended(observe(document()))
    assert watch.ended(observe(document()._replace(sent_at=GONE_AFTER, sent_by=GONE_AFTER)))


def test_an_event_of_the_note_is_held_whatever_its_other_values():
    held = Held(types=["Freeze"])
    held.ended(), held.ended(event("A", resources=["vm9"], minutes=9999))
    assert held.ended() is False and held.ended() is True


def test_a_due_event_that_appears_is_held_and_added_to_the_note():
    held = Held()
    assert [held.ended(event("B")), held.ended(event("b", "Started"))] == [False, False]
    assert [(added["event_id"], bool(added["started"])) for added in held.added] == [("B", False), ("b", True)]
    assert [held.ended(), held.ended()] == [False, True]
    seen = {item["event_id"]: item for item in held.watch.events}
    assert seen["b"]["started"] and seen["b"]["over"] and not seen["A"]["started"] and seen["A"]["over"]


@pytest.mark.parametrize(
    "other", [event("B", minutes=31), event("B", resources=["vm2"]), event("B", event_type="Terminate")]
)
def test_other_events_do_not_delay_the_recovery(other):
    held = Held(types=["Reboot"])
    assert [held.ended(other), held.ended(other)] == [False, True] and held.added == []


@pytest.mark.parametrize("resources", [None, ()])
def test_an_event_whose_vms_cannot_be_read_may_affect_this_one(resources):
    held = Held()
    assert [held.ended(event("B", resources=resources)) for dummy in range(3)] == [False] * 3


def test_a_running_command_prevents_the_recovery():
    held = Held()
    held.busy = ["4711 (drain)"]
    assert [held.ended(), held.ended(), held.ended()] == [False] * 3
    assert "4711 (drain)" in held.watch.blocked_by()
    held.busy = []
    assert held.ended() is True


def test_blocked_by_names_the_events():
    held = Held()
    held.ended(event("A", "Started"))
    assert held.watch.blocked_by() == "Reboot A is Started"
    held.ended()
    assert "confirmed" in held.watch.blocked_by()


@pytest.mark.parametrize(
    "made, due", [(event("A", minutes=30), True), (event("A", minutes=31), False), (event("A", "Started"), True)]
)
def test_an_event_is_due_by_the_clock_of_the_server(made, due):
    shown = document(made)
    assert is_due(shown.events[0], shown, 1800) is due


@pytest.mark.skipif(not os.path.exists("/proc/self/environ"), reason="only Linux shows the environment of processes")
def test_processes_of_a_run_are_found_by_their_environment():
    command = [sys.executable, "-c", "import sys; print(flush=True); sys.stdin.read()"]
    environment = dict(os.environ, **{RUN_VARIABLE: "run-4711/prepare"})
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        found = processes_of(["run-1", "run-4711"], "prepare")
        assert len(found) == 1 and found[0].startswith(f"{process.pid} (")
        assert (
            processes_of(["run-471"], "prepare")
            == processes_of([], "prepare")
            == processes_of(["run-4711"], "recover")
            == []
        )
        process.stdin.close()
    assert processes_of(["run-4711"], "prepare") == []


def test_processes_without_proc_are_none(tmp_path):
    assert processes_of(["run"], "prepare", proc=str(tmp_path / "none")) == []


@pytest.fixture
def process(tmp_path):
    """The folder of a process of this user in a proc file system of its own."""
    folder = tmp_path / "17"
    folder.mkdir()
    started = 100
    user = os.geteuid()
    for name, text in (
        ("environ", f"HOME=/\x00{RUN_VARIABLE}=run/prepare\x00"),
        ("cmdline", "drain\0--all\0"),
        ("stat", f"17 (a) b) S {' '.join(['0'] * 18)} {int(started * os.sysconf('SC_CLK_TCK'))} 0"),
        ("status", f"Name:\ta\nUid:\t{user}\t{user}\t{user}\t{user}\n"),
        ("exe", ""),
    ):
        (folder / name).write_text(text)
    (tmp_path / "uptime").write_text("119.50 80.00\n")
    return folder


def found_in(process, younger_than=0):
    return processes_of(["run"], "prepare", younger_than, str(process.parent))


def test_a_process_older_than_the_task_timeout_is_ignored(process):
    assert found_in(process) == found_in(process, 20) == ["17 (drain --all)"] and found_in(process, 19) == []


OTHER = 4711


@pytest.mark.parametrize("users", [[OTHER] * 4, [OTHER, 0, 0, 0], [0, OTHER, 0, 0]])
def test_a_process_of_another_user_is_ignored(process, users):
    (process / "status").write_text("Name:\ta\nUid:\t" + "\t".join(map(str, users)) + "\n")
    assert found_in(process) == []


def test_a_process_of_root_counts_except_of_a_program_that_each_user_starts_as_root(process):
    (process / "status").write_text("Name:\tsudo\nUid:\t0\t0\t0\t0\n")
    assert found_in(process) == ["17 (drain --all)"]
    (process / "exe").chmod(0o4755)
    assert found_in(process) == []


def test_the_command_line_of_a_process_is_printable(process):
    (process / "cmdline").write_text("drain\0\x1b[2J\nx\0")
    assert found_in(process) == ["17 (drain ?[2J?x)"]


def test_vm_that_leaves_the_event_may_recover_after_two_documents():
    held = Held()
    assert not held.ended(event("A", resources=["vm1", "vm2"]))
    assert [held.ended(event("A", status="Started", resources=["vm2"])) for _ in range(2)] == [False, True]
    (seen,) = held.watch.events
    assert seen["listed"] and seen["over"]


def test_vm_that_one_document_lacks_stays_in_the_note():
    held = Held()
    held.ended(event("A", resources=["vm1", "vm2"]))
    held.added.clear()
    held.ended(event("A", minutes=20, resources=["vm2"]))
    assert [set(each["resources"]) for each in held.added] == [{"vm1", "vm2"}]


def test_moved_not_before_is_written_into_the_note_and_kept_after_the_start():
    held = Held()
    held.ended(event("A"))
    held.added.clear()
    held.ended(event("A"))
    assert held.added == []
    held.ended(event("A", minutes=20))
    assert [each["not_before"] for each in held.added] == ["2026-11-21T12:20:00Z"]
    held.ended(event("A", status="Started"))
    (seen,) = held.watch.events
    assert (seen["not_before"], seen["last_not_before"]) == (None, "2026-11-21T12:20:00Z")


@pytest.mark.parametrize("forget", [[], ["started"]])
def test_event_of_a_note_that_was_seen_started_stays_started_for_the_next_process(forget):
    held = Held()
    held.ended(event("A")), held.ended(event("A", "Started")), held.ended(event("A", "Started"))
    assert len(held.added) == 2
    (noted,) = merged([NOTED], held.added)
    assert (noted["not_before"], noted["status"]) == ("2026-11-21T12:10:00Z", "Started")
    later = Held({name: value for name, value in noted.items() if name not in forget})
    assert [later.ended(), later.ended()] == [False, True]
    (seen,) = later.watch.events
    assert seen["last_not_before"] == noted["not_before"] and seen["over"] > seen["started"]
    assert forget or seen["started"] == noted["started"]
