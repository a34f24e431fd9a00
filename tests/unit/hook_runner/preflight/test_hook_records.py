# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The check that finds preparations which no recover hook would undo."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hook_runner.config.settings import HookSettings
from hook_runner.hooks.discovery import Hook
from hook_runner.preflight.hook_records import check_hook_records
from hook_runner.preflight.report import ERROR, WARNING

CALL = 'exec "${READY_HOOKS_LIBRARY:-/usr/local/lib/azure-scheduled-events-hooks}/%s" "${1:-recover}" --json \'{}\'\n'


def recover_hook(folder: Path, name: str, use: str) -> Hook:
    file = folder / name
    file.write_text("#!/bin/sh\n" + CALL % use)
    return Hook("recover", name, str(file), HookSettings(), None)


def found(folder: Path, *hooks: Hook) -> list[tuple[str, str]]:
    return [(each.severity, Path(each.where).name) for each in check_hook_records(str(folder), hooks)]


def write_record(folder: Path, name: str, use: str) -> None:
    (folder / f"{name}.json").write_text(json.dumps({"version": 1, "use": use, "data": {}}))


@pytest.mark.parametrize(
    ("hooks", "findings"),
    [
        ([("79-web", "haproxy")], []),
        ([("61-web", "haproxy")], []),
        ([], [(ERROR, "web.json")]),
        ([("79-db", "haproxy")], [(ERROR, "web.json")]),
        ([("79-web", "redis")], [(ERROR, "web.json")]),
    ],
)
def test_record_needs_a_recover_hook_of_its_name_and_kind(
    tmp_path: Path, hooks: list[tuple[str, str]], findings: list[tuple[str, str]]
) -> None:
    write_record(tmp_path, "web", "haproxy")
    assert found(tmp_path, *(recover_hook(tmp_path, *each) for each in hooks)) == findings


@pytest.mark.parametrize("use", ["log", "notify"])
def test_record_of_a_hook_that_only_reports_is_no_finding(tmp_path: Path, use: str) -> None:
    write_record(tmp_path, use, use)
    assert found(tmp_path) == []


@pytest.mark.parametrize("text", ["", "[]", "{}", "no JSON"])
def test_damaged_record_is_a_warning(tmp_path: Path, text: str) -> None:
    (tmp_path / "web.json").write_text(text)
    assert found(tmp_path) == [(WARNING, "web.json")]


def test_missing_folder_is_no_finding(tmp_path: Path) -> None:
    assert found(tmp_path / "absent") == []
