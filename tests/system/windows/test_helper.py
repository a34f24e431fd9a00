# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The helper on Windows: receipts in the default folder."""

from __future__ import annotations

import shutil

import pytest

from support.windows.wine import PYTHON, Wine

pytestmark = pytest.mark.all

FOLDER = r"C:\ProgramData\azure-scheduled-events\approvals"
RECEIPTS = """
import sys
sys.path.insert(0, sys.argv[1])
from azure_scheduled_events.receipts import Receipts, default_folder
receipts = Receipts(default_folder(), "http://169.254.169.254")
if sys.argv[2] == "write":
    receipts.write("A", "2026-01-01T00:00:00Z")
print(receipts.find("a"))
"""


def test_receipts_hold_in_all_processes_of_a_boot(wine: Wine, helper: str) -> None:
    folder = wine.inside(FOLDER)
    shutil.rmtree(folder, ignore_errors=True)

    def ask(action: str) -> str:
        return wine.run(PYTHON, "-c", RECEIPTS, helper, action).strip()

    assert ask("find") == "None"
    assert [ask(action) for action in ("write", "find")] == ["2026-01-01T00:00:00Z"] * 2
    wine.end()
    wine.boot()
    assert ask("find") == "None"
    assert [ask(action) for action in ("write", "find")] == ["2026-01-01T00:00:00Z"] * 2
    assert [path.name for path in folder.iterdir()] == ["receipts.json"]
