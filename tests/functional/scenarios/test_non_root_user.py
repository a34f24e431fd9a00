# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""event_approve where Ansible logs in as a user other than root.

When root runs the tests this is a real other user, otherwise the present one.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import requests

from support.ansible_hosts import Hosts
from support.other_user import USER, folder_for_user, python_for_user
from support.simulator_process import Simulator

pytestmark = pytest.mark.all

EVENT_ID = "5C1D6E3A-84F2-4B7E-9A10-2F0C7B9D4E01"
FOLDER = Path(".local", "state", "azure-scheduled-events", "approvals")

# a Python for the managed node that switches to the user first
AS_USER = """#!%(own)s
import os, sys
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(%(user)d)
    os.setuid(%(user)d)
environment = {"PATH": os.environ["PATH"], "PYTHONPATH": %(libraries)r, "HOME": %(home)r}
os.chdir("/")
os.execve(%(python)r, [%(python)r, *sys.argv[1:]], environment)
"""


def test_user_approves_an_event_once(simulate: Callable[..., Simulator], tmp_path: Path) -> None:
    azure = simulate({"name": "one", "id": EVENT_ID, "type": "Reboot", "resources": ["vm1"], "source": "User"})
    python = python_for_user()
    if python is None:
        pytest.skip("needs a Python that other users can run")
    libraries = str(Path(requests.__file__).parents[1])
    with folder_for_user() as folder:
        home, shim = folder / "home", folder / "python"
        home.mkdir()
        os.chown(home, USER, -1)
        values = {"own": sys.executable, "user": USER, "python": str(python), "libraries": libraries, "home": str(home)}
        shim.write_text(AS_USER % values)
        shim.chmod(0o755)
        hosts = Hosts(tmp_path, {"vm1": {"ansible_python_interpreter": str(shim)}})
        # with pipelining Ansible does not write the module to a file of root
        hosts.environment["ANSIBLE_PIPELINING"] = "1"
        options = {"endpoint": azure.endpoints["vm1"], "event_ids": [EVENT_ID]}
        first, second = (hosts.module("vm1", "event_approve", **options) for _run in range(2))
        assert first["changed"] is True and first["approved"] == [EVENT_ID]
        assert second["changed"] is False and second["approvals"][0]["outcome"] == "already_approved"
        assert [path.stat().st_uid for path in (home / FOLDER).iterdir()] == [USER]
        assert (home / FOLDER).stat().st_mode & 0o022 == 0
