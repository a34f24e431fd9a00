# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The script that docs/migration.md replaces handles events as the page says."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from support import simulator_process
from support.recipes.printed import find

PAGE = "docs/migration.md"
SCENARIO = {"groups": {"set": {"vms": {"web1": {}, "web2": {}}}}, "knobs": {"rate_limit": 0}}
PROGRAMS = ("leave-load-balancer", "join-load-balancer")
MISSING = [name for name in ("curl", "jq") if shutil.which(name) is None]

pytestmark = [
    pytest.mark.all,
    pytest.mark.skipif(bool(MISSING), reason=f"the script of the page needs {' and '.join(MISSING)}"),
]


def test_script_approves_one_event_for_all_its_vms_and_recovers_after_the_last(tmp_path: Path) -> None:
    calls, failing = tmp_path / "calls", tmp_path / "failing"
    for name in PROGRAMS:
        program = tmp_path / name
        program.write_text(f'#!/bin/sh\necho {name} >>"{calls}"\n! test -e "{failing}"\n', encoding="utf-8")
        program.chmod(0o755)
    with simulator_process.start(SCENARIO, ["--clock", "manual"]) as azure:
        script = find(PAGE, "#!/bin/sh").text
        for theirs, ours in {
            "http://169.254.169.254": azure.endpoints["web1"],
            "/usr/local/bin": str(tmp_path),
            "/var/lib/azure-events-drained": str(tmp_path / "drained"),
        }.items():
            assert theirs in script
            script = script.replace(theirs, ours)

        def announce(*resources: str) -> str:
            return str(azure.post("/events", {"type": "Reboot", "resources": resources, "notice": "15m"})["id"])

        def run() -> tuple[int, list[str], list[str]]:
            """Return the exit code, the calls so far, and the ids of the approved events."""
            ended = subprocess.run(["sh", "-c", script], capture_output=True, timeout=60, check=False)
            approved = [line for line in azure.get("/log?what=approval")["lines"] if line["status"] == 200]
            called = calls.read_text(encoding="utf-8").split() if calls.exists() else []
            return ended.returncode, called, [event_id for line in approved for event_id in line["ids"]]

        assert run() == (0, [], [])
        first = announce("web1", "web2")
        failing.touch()
        assert run() == (1, [PROGRAMS[0]], [])
        failing.unlink()
        prepared = [PROGRAMS[0]] * 2
        assert run() == (0, prepared, [first])
        other = announce("web2")
        assert run()[1:] == (prepared, [first])
        azure.post(f"/events/{first}/cancel")
        assert run()[1:] == (prepared, [first])
        azure.post(f"/events/{other}/cancel")
        assert run() == (0, [*prepared, PROGRAMS[1]], [first])
