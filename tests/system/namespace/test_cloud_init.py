# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""cloud-init's own Azure data source reads the simulator's instance metadata."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support import simulator_process
from support.cloud_init import unpacked
from support.network import IMDS, at_imds_address

pytestmark = pytest.mark.all

KEYS = [{"keyData": f"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA{name} {name}", "path": "keys"} for name in "ab"]
COMPUTE = {"publicKeys": KEYS, "osProfile": {"adminUsername": "me"}, "userData": "aGVsbG8="}
SCENARIO = {"groups": {"web": {"kind": "scale_set", "vms": {"web_13": {"instance": {"compute": COMPUTE}}}}}}


def test_cloud_init_gets_keys_user_and_host_name(tmp_path: Path) -> None:
    cloud_init = unpacked()
    if cloud_init is None:
        pytest.skip("needs cloud-init; python -m support.cloud_init unpacks it")
    program = Path(__file__).with_name("cloud_init_client.py")
    # the rate limit is that of Azure
    with at_imds_address(), simulator_process.start(SCENARIO, ["--strict"], listen=IMDS + ":80"):
        done = subprocess.run(
            [sys.executable, program, tmp_path],
            env={**os.environ, "PYTHONPATH": str(cloud_init)},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    made: dict[str, Any] = json.loads(done.stdout)
    assert made["ssh_keys"] == [key["keyData"] for key in KEYS]
    assert (made["user"], made["host_name"]) == ("me", "web00000d")
    assert made["user_data"] == "aGVsbG8=" and made["disable_password"] is True
    assert made["mac"] == "00:0d:3a:00:00:00"
    # the members of the version that cloud-init asks for first
    assert "extendedLocation" in made["compute"] and "host" not in made["compute"]
