# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: GPL-3.0-or-later
"""The list of ready hooks becomes files of the hook runner, and runs on a host."""

from __future__ import annotations

import json
import subprocess
from datetime import datetime, timezone

import pytest
from ansible_collections.azure_imds.scheduled_events.plugins.plugin_utils._ready_hooks import (
    MARK,
    MOST_ENTRIES,
    event_variables,
    failures,
    hook_files,
    read_entries,
    runs,
    runs_for,
)

NOW = datetime(2026, 11, 21, 10, tzinfo=timezone.utc)
TEXTS = ["it's $HOME", 'double "quotes"', "two\nlines", "ünïcode ☃", "`id` $(id)", "back\\slash {{ x }}", " -x "]


def variables(events, stage="prepare", timeout=300, starts_at=None, types=()):
    return event_variables(events, types, stage, "vm1", timeout, starts_at or {}, NOW)


def test_hook_files_recover_in_reverse_order():
    found = hook_files([{"use": "haproxy"}, {"use": "notify", "name": "chat"}], "hooks", "")
    assert [f"{each['stage']}/{each['name']}" for each in found] == [
        "prepare/21-haproxy",
        "recover/79-haproxy",
        "prepare/22-chat",
        "emergency/22-chat",
        "started/22-chat",
        "recover/78-chat",
    ]


def test_hook_files_of_all_stages_have_the_settings():
    found = hook_files([{"use": "redis", "settings": {"timeout": "2m"}}, {"use": "log"}], "hooks", "")
    assert [each.get("settings") for each in found][:3] == [{"timeout": "2m"}, {"timeout": "2m"}, None]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("words, verb", [([], "prepare"), (["check"], "check")])
def test_hook_file_passes_any_text_unchanged(tmp_path, text, words, verb):
    program = tmp_path / "command"
    program.write_text('#!/bin/sh\nprintf "%s\\0" "$READY_HOOKS_PYTHON" "$@"\n')
    program.chmod(0o755)
    (made, _recover) = hook_files([{"use": "command", "prepare": [text], "number": 3}], "hooks", "/usr/bin/python3")
    file = tmp_path / made["name"]
    file.write_text(made["content"])
    environment = {"PATH": "/usr/bin:/bin", "READY_HOOKS_LIBRARY": str(tmp_path)}
    command = ["sh", str(file), *words]
    output = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
    python, stage, flag, given = output.split("\0")[:4]
    assert (python, stage, flag) == ("/usr/bin/python3", verb, "--json")
    assert json.loads(given) == {"prepare": [text], "number": 3}


def test_hook_file_of_stage_prepare_answers_check():
    prepare, recover = hook_files([{"use": "haproxy"}], "hooks", "")
    lines = [each["content"].splitlines() for each in (prepare, recover)]
    assert [each[1] == "# azure-scheduled-events: answers check" for each in lines] == [True, False]
    assert all(each[2].startswith(MARK) for each in lines)


@pytest.mark.parametrize(
    "entries, problem",
    [
        ("haproxy", "hooks: not a list"),
        (["haproxy"], "hooks[0]: not a mapping"),
        ([{"server": "web/web1"}], "hooks[0]: use is missing"),
        ([{"use": "haproxi"}], "unknown ready hook 'haproxi'; did you mean haproxy?"),
        ([{"use": "redis", "name": "a b"}], "'a b' is not a name"),
        ([{"use": "redis"}, {"use": "redis"}], "hooks[1]: the name redis is that of hooks[0], too; set name"),
        ([{"use": "redis", "settings": "2m"}], "settings is not a mapping"),
    ],
)
def test_wrong_entry_is_named(entries, problem):
    with pytest.raises(ValueError) as caught:
        read_entries(entries, "hooks")
    assert problem in str(caught.value)


def test_more_entries_than_numbers_are_an_error():
    entries = [{"use": "command", "name": f"c{number}"} for number in range(MOST_ENTRIES + 1)]
    assert len(hook_files(entries[:-1], "hooks", "")) == 2 * MOST_ENTRIES
    with pytest.raises(ValueError):
        hook_files(entries, "hooks", "")


@pytest.mark.parametrize("timeout, seconds", [(None, 300), ("2m", 120), ("30s", 30), (45, 45), ("1h", 3600)])
def test_run_has_the_time_limit_of_its_settings(timeout, seconds):
    settings = {} if timeout is None else {"settings": {"timeout": timeout}}
    (run,) = runs([{"use": "redis", **settings}], "hooks")
    assert (run["seconds"], run["options"]) == (seconds, {})


@pytest.mark.parametrize(
    "settings, problem",
    [
        ({"needs": 5}, "unknown setting 'needs'; there are: timeout, types"),
        ({"timeut": 5}, "did you mean timeout[?]"),
        ({"timeout": True}, "seconds"),
        ({"types": 5}, "event type"),
    ],
)
def test_setting_that_a_run_cannot_obey_is_an_error(settings, problem):
    with pytest.raises(ValueError, match=problem):
        runs([{"use": "redis", "settings": settings}], "hooks")


@pytest.mark.parametrize("types", [["reboot"], "REBOOT"])
def test_type_in_another_letter_case_is_the_known_one(types):
    (run,) = runs([{"use": "redis", "settings": {"types": types}}], "hooks")
    assert run["types"] == ["Reboot"]


@pytest.mark.parametrize(
    "types, events, expected",
    [
        (None, ["SpotRebalanceRecommendation"], False),
        (None, ["SpotRebalanceRecommendation", "Freeze"], True),
        (["SpotRebalanceRecommendation"], ["spotrebalancerecommendation"], True),
        (["Redeploy", "Freeze"], ["Reboot", "FREEZE"], True),
        (["Redeploy"], [], True),
    ],
)
def test_hook_prepares_for_the_types_of_its_settings(types, events, expected):
    found = runs([{"use": "redis", "settings": {"types": types}}], "hooks")
    assert bool(runs_for(found, [{"event_type": kind} for kind in events])) is expected


def test_recovery_is_for_the_most_severe_event():
    events = [
        {"event_id": "A", "event_type": "Redeploy", "not_before": "2026-11-21T10:20:00Z", "started": True},
        {"event_id": "B", "event_type": "Freeze", "not_before": "2026-11-21T10:15:00Z"},
    ]
    given = variables(events, "recover")
    assert (given["EVENT_ID"], given["EVENT_OUTCOME"]) == ("A", "completed")
    assert variables([], "recover")["EVENT_ID"] == ""


def test_event_variables_are_those_of_the_most_urgent_event():
    events = [
        {"event_id": "A", "event_type": "Freeze", "not_before": "2026-11-21T10:15:00Z"},
        {"event_id": "B", "event_type": "Reboot", "not_before": "2026-11-21T10:15:00Z"},
        {"event_id": "C", "event_type": "Redeploy", "not_before": "2026-11-21T10:20:00Z"},
    ]
    assert variables(events)["EVENT_ID"] == "B"
    assert variables([*events, {"event_id": "D", "event_type": "Preempt", "not_before": None}])["EVENT_ID"] == "B"
    assert variables([])["EVENT_ID"] == ""


def test_event_variables_are_those_of_an_event_that_the_hook_prepares_for():
    events = [
        {"event_id": "A", "event_type": "Freeze", "not_before": "2026-11-21T11:00:00Z"},
        {"event_id": "B", "event_type": "Reboot", "not_before": "2026-11-21T10:02:00Z"},
    ]
    given = variables(events, types=["Freeze"])
    assert (given["EVENT_SECONDS_LEFT"], given["HOOK_SECONDS"]) == ("3600", "115")
    for stage in ("prepare", "recover"):
        found = [variables(events, stage, types=types)["EVENT_ID"] for types in ((), ["freeze"], ["Preempt"])]
        assert found == ["B", "A", "B"]


@pytest.mark.parametrize(
    ("not_before", "seconds", "left"),
    [
        ("2026-11-21T12:00:00Z", "300", "7200"),
        ("2026-11-21T10:00:25Z", "20", "25"),
        ("2026-11-21T09:59:00Z", "30", "0"),
        (None, "300", "0"),
    ],
)
def test_hook_has_at_most_the_time_that_is_left_less_the_margin(not_before, seconds, left):
    event = {"event_id": "A", "event_type": "Preempt", "not_before": not_before}
    found = variables([event])
    assert (found["HOOK_SECONDS"], found["EVENT_SECONDS_LEFT"]) == (seconds, left)
    found = variables([event], "recover")
    assert (found["HOOK_SECONDS"], found["EVENT_SECONDS_LEFT"]) == ("300", "")


def test_time_left_counts_by_the_clock_that_the_caller_knows():
    event = {"event_id": "Ab-1", "event_type": "Reboot", "not_before": "2026-11-20T10:15:00Z"}
    found = variables([event], starts_at={"ab-1": "2026-11-21T10:01:00.250000Z"})
    assert (found["HOOK_SECONDS"], found["EVENT_SECONDS_LEFT"]) == ("55", "60")
    assert found["EVENT_NOT_BEFORE"] == "2026-11-20T10:15:00Z"


def test_hook_without_an_event_has_its_own_time():
    for stage in ("prepare", "recover"):
        found = variables([], stage, timeout=120)
        assert {name: value for name, value in found.items() if value} == {
            "EVENT_STAGE": stage,
            "EVENT_RESOURCE": "vm1",
            "HOOK_SECONDS": "120",
        }


@pytest.mark.parametrize(
    ("more", "outcome"),
    [
        ({}, "unknown"),
        ({"started": None}, "unknown"),
        ({"started": "x"}, "completed"),
        ({"status": "Started"}, "completed"),
        ({"outcome": "canceled"}, "canceled"),
    ],
)
def test_event_variables_have_the_outcome_for_recover_only(more, outcome):
    event = {"event_id": "A", "status": "Scheduled", **more}
    assert variables([event], "recover")["EVENT_OUTCOME"] == outcome
    assert variables([event])["EVENT_OUTCOME"] == ""


def test_failures_names_each_hook_and_its_last_line():
    results = [
        {"item": {"name": "a"}, "rc": 0},
        {"item": {"name": "b"}, "rc": 1, "stderr": "x\nno socket\n"},
        {"item": {"name": "c"}, "rc": 124, "stderr": ""},
        {"item": {"name": "d"}, "skipped": True},
    ]
    assert failures(results, "recover") == (
        "ready hook b: recover failed: no socket; ready hook c: recover failed: it did not end within its time limit"
    )
