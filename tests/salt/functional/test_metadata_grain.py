# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Salt's own grain ``metadata_azure`` reads the simulator's instance metadata at 169.254.169.254."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.repository import REPOSITORY

if sys.platform == "win32":
    pytest.skip("the address of IMDS needs a network namespace of Linux", allow_module_level=True)

from support.network import IN_OWN_NETWORK, skip_reason

# runs in a network namespace of its own, because the address is fixed in the grain
PROGRAM = """
import json
import subprocess
import sys
from pathlib import Path

from support import simulator_process
from support.network import IMDS, at_imds_address, ip

compute = {"location": "northeurope", "tagsList": [{"name": "role", "value": "web"}]}
scenario = {"groups": {"web": {"kind": "scale_set", "instance": {"compute": compute}, "vms": {"web_13": {}}}}}
ip("link", "set", "lo", "up")
with at_imds_address(), simulator_process.start(scenario, ["--strict"], listen=IMDS + ":80") as simulator:
    status = subprocess.run(sys.argv[2:], check=False).returncode
    Path(sys.argv[1]).write_text(json.dumps(simulator.get("/requests")["counts"]))
sys.exit(status)
"""


@pytest.mark.skipif(
    importlib.util.find_spec("salt.grains.metadata_azure") is None, reason="this series of Salt has no such grain"
)
def test_metadata_azure_grain_has_compute_and_network(tmp_path: Path) -> None:
    if reason := skip_reason():
        pytest.skip(reason)
    config = {"id": "web_13", "root_dir": str(tmp_path), "file_client": "local", "metadata_server_grains": True}
    (tmp_path / "minion").write_text(json.dumps(config), encoding="utf-8")
    salt_call = [str(Path(sys.executable).with_name("salt-call")), "--local", f"--config-dir={tmp_path}", "--out=json"]
    counts = tmp_path / "counts.json"
    done = subprocess.run(
        [*IN_OWN_NETWORK, sys.executable, "-c", PROGRAM, str(counts), *salt_call, "grains.item", "compute", "network"],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY / "tests")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    grains = json.loads(done.stdout)["local"]
    assert (grains["compute"]["name"], grains["compute"]["location"]) == ("web_13", "northeurope")
    assert grains["compute"]["tags"] == "role:web"
    # the members of the version that the grain asks for
    assert "licenseType" in grains["compute"] and "userData" not in grains["compute"]
    assert grains["network"]["interface"][0]["macAddress"] == "000D3A000000"
    # with the rate limit of Azure: probes of other clouds do not count (docs/reference/scheduled-events.md 1.7.5)
    probes = 0
    for each in json.loads(counts.read_text(encoding="utf-8")):
        assert (each["route"], each["status"]) in (("unknown", 400), ("instance", 200))
        probes += each["count"] if each["route"] == "unknown" else 0
    assert probes == 4
