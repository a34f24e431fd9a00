# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Run a module of the collection in PowerShell itself, with the library that Ansible would send along."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ansible.module_utils

from support.repository import REPOSITORY

PROGRAM = shutil.which("pwsh")
NOT_HERE = "PowerShell (pwsh) is not on this machine"

_LEGACY = Path(ansible.module_utils.__file__).parent / "powershell" / "Ansible.ModuleUtils.Legacy.psm1"
# the global variable has the options, as Ansible's own wrapper sets it
_START = """
$ErrorActionPreference = 'Stop'
Set-StrictMode -Version 2.0
Import-Module $env:IMDS_TEST_LEGACY -WarningAction SilentlyContinue
$global:complex_args = [Console]::In.ReadToEnd() | ConvertFrom-Json -AsHashtable
& $env:IMDS_TEST_MODULE
"""


def run_module(name: str, options: Mapping[str, Any], environment: Mapping[str, str]) -> dict[str, Any]:
    """Run the module of this name and return its result.

    Args:
        name: such as "imds_exchange".
        options: of the module.
        environment: additional variables of its process.

    Returns:
        The decoded result.
    """
    assert PROGRAM is not None, NOT_HERE
    module = REPOSITORY / "plugins" / "modules" / f"{name}.ps1"
    done = subprocess.run(
        [PROGRAM, "-NoProfile", "-NonInteractive", "-Command", _START],
        input=json.dumps(options),
        capture_output=True,
        check=False,
        text=True,
        encoding="utf-8",
        timeout=120,
        env={**os.environ, **environment, "IMDS_TEST_LEGACY": str(_LEGACY), "IMDS_TEST_MODULE": str(module)},
    )
    assert done.stdout, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result
