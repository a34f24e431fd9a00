# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A new type of event is one line of one file: every part of the product then knows it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.repository import REPOSITORY

HELPER = "azure_scheduled_events"
NEW = '    "Hibernate": _EventType(Nature.INTERRUPTS, 4),\n'
# the line behind which the new one is put
REDEPLOY = NEW.replace("Hibernate", "Redeploy")

PROGRAM = """
import json
from datetime import datetime, timezone

from azure_events_watch.settings import parse_selection
from azure_scheduled_events.conditions import PolicyContext
from azure_scheduled_events.document import parse_document
from azure_scheduled_events.policy import Policy
from azure_scheduled_events.urgency import Urgency, counts_for, most_urgent_first
from hook_runner.cli import verbs

entry = {"EventId": "A", "EventStatus": "Scheduled", "EventType": "HIBERNATE", "ResourceType": "VirtualMachine",
         "Resources": ["vm1"], "NotBefore": "Sat, 21 Nov 2026 10:15:00 GMT"}
document = parse_document(json.dumps({"DocumentIncarnation": 1, "Events": [entry]}))
policy = Policy.from_mapping({"rules": [{"approve": "now"}]})
try:
    command = verbs.parser().parse_args(["try", "10-drain", "--type", "hibernate"]).type
except SystemExit:
    command = None
print(json.dumps({
    "warnings": len(document.warnings),
    "approved": policy.decide(document.events[0], PolicyContext(datetime.now(timezone.utc))).code is None,
    "counts": [counts_for(done, needed) for done, needed in (("Hibernate", "Reboot"), ("Redeploy", "Hibernate"))],
    "first": most_urgent_first(["Reboot", "Hibernate"], lambda kind: Urgency(kind, 60.0, kind))[0],
    "unknown in Salt": len(parse_selection({"types": "hibernate"}).warnings()),
    "command": command,
}))
"""


def answers(folder: Path, line: str) -> dict[str, Any]:
    """Return what the product makes of a Hibernate with this line in the table of types."""
    shutil.copytree(REPOSITORY / "plugins/module_utils" / HELPER, folder / HELPER)
    table = folder / HELPER / "event_types.py"
    text = table.read_text(encoding="utf-8")
    assert text.count(REDEPLOY) == 1
    table.write_text(text.replace(REDEPLOY, REDEPLOY + line), encoding="utf-8")
    parts = [folder, REPOSITORY / "roles/hook_runner/files", REPOSITORY / "salt/_utils"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, parts))}
    run = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(run.stdout)
    return found


@pytest.mark.parametrize(
    ("line", "expected"),
    [("", [1, False, [False, False], "Reboot", 1, None]), (NEW, [0, True, [True, True], "Hibernate", 0, "Hibernate"])],
    ids=["unknown", "known"],
)
def test_new_type_is_known_after_one_line(line: str, expected: list[Any], tmp_path: Path) -> None:
    assert list(answers(tmp_path, line).values()) == expected
