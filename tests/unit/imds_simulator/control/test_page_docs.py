# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The commands of docs/simulator/live-page.md, as printed except for the ports."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.simulator.in_thread import start_in_thread
from support.simulator.raw_http import send_request

ROOT = Path(__file__).resolve().parents[4]
TEXT = (ROOT / "docs" / "simulator" / "live-page.md").read_text(encoding="utf-8")


TOKEN = "a-token-of-tests"
COMMANDS = "".join(re.findall(r"```bash\n(.*?)```", TEXT, re.DOTALL)).splitlines()
EXPORTS = [line for line in COMMANDS if line.startswith("export ")]
SERVERS = [line for line in COMMANDS if line.startswith("python3 -m imds_simulator --scenario")]
CLIENTS = [line for line in COMMANDS if line not in (*EXPORTS, *SERVERS)]
# python3 is the Python of these tests
VARIABLES = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


@pytest.mark.parametrize("number", [0, 1])
def test_servers_of_the_page_start_as_printed(number):
    command = SERVERS[number].replace("0.0.0.0:8168", "127.0.0.1:0")
    command += " --listen 127.0.0.1:0 --quiet" + ("" if "--control" in command else " --control 127.0.0.1:0")
    script = "\n".join([*EXPORTS[: number + 1], f"exec {command}"])
    with subprocess.Popen(
        ["bash", "-ec", script], cwd=ROOT, env=VARIABLES, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            control = next(line.split()[1] for line in process.stdout if line.startswith("control "))
            page = send_request(control, "/", headers={"Accept": "text/html"})
            assert page.status == 200 and b'id="live-events"' in page.body
            assert send_request(control, "/state").status == (401 if number else 200)
        finally:
            process.terminate()


def test_clients_of_the_page_send_the_token_as_printed():
    assert len(CLIENTS) == 2
    with start_in_thread(token=TOKEN) as simulator:
        for client in CLIENTS:
            script = "\n".join([EXPORTS[0], client.replace("127.0.0.1:8168", simulator.control.partition("://")[2])])
            variables = {**VARIABLES, "IMDS_SIMULATOR_CONTROL_TOKEN": TOKEN}
            ran = subprocess.run(
                ["bash", "-ec", script], cwd=ROOT, env=variables, capture_output=True, timeout=60, check=False
            )
            assert ran.returncode == 0 and b'"vms"' in ran.stdout, ran.stderr
