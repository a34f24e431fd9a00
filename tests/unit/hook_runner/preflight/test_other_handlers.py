# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""`check` warns where another component prepares the same host."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from azure_scheduled_events.receipts import DEFAULT_FOLDER, Receipts
from azure_scheduled_events.timestamps import as_utc_text
from hook_runner.preflight.other_handlers import RECENT, check_other_handlers
from hook_runner.preflight.report import WARNING, Report

ENDPOINT = "http://169.254.169.254"


def findings(root: Path, approves: bool = True) -> list[tuple[str, str]]:
    report = Report()
    check_other_handlers(ENDPOINT, approves, report, str(root))
    assert all(finding.what == "other handlers" for finding in report.findings)
    return [(finding.severity, finding.where) for finding in report.findings]


def write(root: Path, name: str, text: str) -> str:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return str(path)


def test_host_without_other_handlers_has_no_finding(tmp_path: Path) -> None:
    write(tmp_path, "etc/salt/minion", "master: salt\n#beacons:\n#  azure_events:\n#    - interval: 1\n")
    assert findings(tmp_path) == []


@pytest.mark.parametrize("name", ["etc/salt/minion", "etc/salt/minion.d/beacons.conf"])
@pytest.mark.parametrize("text", ["beacons:\n  azure_events:\n    - interval: 1\n", "beacons:\n  - azure_events: []\n"])
def test_beacon_of_salt_is_a_warning(tmp_path: Path, name: str, text: str) -> None:
    path = write(tmp_path, name, text)
    assert findings(tmp_path) == [(WARNING, path)]


def test_recent_approval_by_a_module_is_a_warning(tmp_path: Path) -> None:
    folder = str(tmp_path / DEFAULT_FOLDER.lstrip("/"))
    now = datetime.now(UTC)
    Receipts(folder, "http://127.0.0.1:8080").write("E-2", as_utc_text(now))
    Receipts(folder, ENDPOINT).write("E-3", as_utc_text(now - RECENT - timedelta(minutes=1)))
    assert findings(tmp_path) == []
    Receipts(folder, ENDPOINT).write("E-1", as_utc_text(now))
    assert findings(tmp_path) == [(WARNING, folder)]
    assert findings(tmp_path, approves=False) == []
