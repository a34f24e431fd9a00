# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The ready hook notify reports to eda.builtin.webhook, in which the rulebook maintenance_pushed receives it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ready_hooks import cli
from support.simulator_process import reserved_port

pytestmark = pytest.mark.all

# the plugin with a queue that prints what a rulebook would get
RECEIVER = """
import asyncio, json, sys
from ansible_rulebook.event_source import webhook

class Printed(asyncio.Queue):
    async def put(self, event):
        print(json.dumps(event), flush=True)

asyncio.run(webhook.main(Printed(), json.loads(sys.argv[1])))
"""


@pytest.mark.parametrize(
    ("expects", "problem"), [({}, None), ({"token": "another"}, "status 401"), ({"hmac_secret": "k3y"}, "status 400")]
)
def test_web_hook_accepts_a_report_with_its_token_and_no_signature(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    expects: dict[str, str],
    problem: str | None,
) -> None:
    pytest.importorskip("ansible_rulebook", reason="needs ansible-rulebook")
    for name, value in (("ID", "AB-1"), ("TYPE", "Reboot"), ("STATUS", "Scheduled"), ("RESOURCES", "vm1")):
        monkeypatch.setenv("EVENT_" + name, value)
    token = tmp_path / "token"
    token.write_text("Bearer t0ken\n")
    token.chmod(0o600)
    accepted = tmp_path / "accepted"
    with reserved_port() as port, accepted.open("wb") as out:
        settings = {"host": "127.0.0.1", "port": port, "token": "t0ken", **expects}
        receiver = subprocess.Popen([sys.executable, "-c", RECEIVER, json.dumps(settings)], stdout=out)
        options = {
            "url": f"http://127.0.0.1:{port}/",
            "header_files": {"Authorization": str(token)},
            "change_record": True,
            "required": True,
            "state_directory": str(tmp_path / "records"),
        }
        try:
            # it tries again until the plugin listens
            status = cli.main(["notify", "prepare", "--json", json.dumps(options)])
        finally:
            receiver.kill()
            receiver.wait()
    found = [json.loads(line) for line in accepted.read_text().splitlines()]
    reported = [each["payload"]["event"]["event_id"] for each in found]
    assert (status, reported) == ((0, ["AB-1"]) if problem is None else (1, []))
    assert problem is None or problem in capsys.readouterr().err
