# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A connection to a Windows host that does not exist: it answers as the modules of this collection would."""

from __future__ import annotations

import base64
import json
import shutil
import urllib.parse
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleConnectionFailure, AnsibleError
from ansible.plugins.connection import ConnectionBase

from support.repository import REPOSITORY
from support.windows_hosts.exchange import perform
from support.windows_hosts.host import DOWN, FILES, REFUSALS, RUNS

DOCUMENTATION = """
name: windows_stand_in
short_description: Stands in for a connection to a Windows host
description: Decodes the payload of a PowerShell module, and performs the work of the module in Python.
options:
  folder:
    description: Path of the folder of the host.
    type: str
    vars:
      - name: ansible_windows_stand_in_folder
"""

_END_OF_PART = b"\0\0\0\0"
_MODULES = REPOSITORY / "plugins" / "modules"

# the result of event_facts.ps1 for facts_modules
UNAVAILABLE: dict[str, Any] = {
    "changed": False,
    "ansible_facts": {
        "azure_scheduled_events": {
            "available": False,
            "reason": "use the task azure_imds.scheduled_events.event_facts instead",
            "resource_name": None,
            "incarnation": None,
            "events": [],
        }
    },
}


class Connection(ConnectionBase):
    """Runs modules of this collection, and fetches files."""

    transport = "windows_stand_in"
    module_implementation_preferences = (".ps1", ".exe", "")
    allow_executable = False
    has_pipelining = True

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.always_pipeline_modules = True
        self.has_native_async = True
        self._shell_type = "powershell"
        super().__init__(*args, **kwargs)

    def _connect(self) -> Connection:
        self._fail_if_down()
        self._connected = True
        return self

    def exec_command(self, cmd: str, in_data: bytes | None = None, sudoable: bool = True) -> tuple[int, bytes, bytes]:
        super().exec_command(cmd, in_data=in_data, sudoable=sudoable)
        self._connect()
        if in_data is None:
            raise AnsibleError(f"the stand-in runs no other command than modules: {cmd[:200]}")
        name, options = module_of(in_data)
        with (self._folder / RUNS).open("a") as runs:
            runs.write(json.dumps({"module": name, "options": options}) + "\n")
        result = perform(options, self._fail_if_down) if name == "imds_exchange.ps1" else UNAVAILABLE
        return 0, json.dumps(result, ensure_ascii=False).encode(), b""

    def put_file(self, in_path: str, out_path: str) -> None:
        raise AnsibleError(f"the stand-in stores no file: {out_path}")

    def fetch_file(self, in_path: str, out_path: str) -> None:
        super().fetch_file(in_path, out_path)
        self._connect()
        found = self._folder / FILES / urllib.parse.quote(in_path, safe="")
        if not found.exists():
            raise AnsibleError(f"no such file: {in_path}")
        shutil.copyfile(found, out_path)

    def close(self) -> None:
        self._connected = False

    def reset(self) -> None:
        self.close()

    @property
    def _folder(self) -> Path:
        return Path(self.get_option("folder"))

    def _fail_if_down(self) -> None:
        if (self._folder / DOWN).exists():
            self._connected = False
            (self._folder / REFUSALS).touch()
            raise AnsibleConnectionFailure("the stand-in is down")


def module_of(payload: bytes) -> tuple[str, dict[str, Any]]:
    """Return the file name and the options of the module in the payload of ansible-core 2.16 or later."""
    manifest = json.loads(payload.rpartition(_END_OF_PART)[2])
    if "module_entry" in manifest:
        script, options = manifest["module_entry"], manifest["module_args"]
    else:
        (params,) = (action["params"] for action in manifest["actions"] if action["name"] == "module_wrapper.ps1")
        (options,) = (item["Value"] for item in params["Variables"] if item["Name"] == "complex_args")
        script = manifest["scripts"][params["Script"]]["script"]
    content = base64.b64decode(script)
    for file in _MODULES.glob("*.ps1"):
        if file.read_bytes().strip() == content.strip():
            return file.name, options
    raise AnsibleError(f"not a PowerShell module of this collection: {content[:200]!r}")
