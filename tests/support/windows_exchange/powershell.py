# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Run modules of the collection in PowerShell itself, with the library that Ansible would send along."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import ansible.module_utils

from support.repository import REPOSITORY

PROGRAM = shutil.which("pwsh")
NOT_HERE = "PowerShell (pwsh) is not on PATH"
# modules that a process runs at a time
AT_A_TIME = 6

_LEGACY = Path(ansible.module_utils.__file__).parent / "powershell" / "Ansible.ModuleUtils.Legacy.psm1"
# seconds: far more than the start of a process, and than a call of a module
_LONGEST = 120.0
# prints a port of the loopback interface, and runs one module for each connection
_START = """
using namespace System.Management.Automation.Runspaces
$ErrorActionPreference = 'Stop'
$state = [InitialSessionState]::CreateDefault2()
# a runspace has the commands of this one: the program may have added some to those of the engine
foreach ($command in Get-Command -ListImported -CommandType Cmdlet) {
    $state.Commands.Add([SessionStateCmdletEntry]::new($command.Name, $command.ImplementingType, $null))
}
foreach ($command in Get-Command -ListImported -CommandType Function) {
    $state.Commands.Add([SessionStateFunctionEntry]::new($command.Name, $command.Definition))
}
$pool = [RunspaceFactory]::CreateRunspacePool($state)
[void]$pool.SetMaxRunspaces([int]$env:IMDS_TEST_AT_A_TIME)
$pool.Open()
$listener = [System.Net.Sockets.TcpListener]::new([System.Net.IPAddress]::Loopback, 0)
$listener.Start()
[Console]::Out.WriteLine($listener.LocalEndpoint.Port)
while ($true) {
    $shell = [PowerShell]::Create()
    $shell.RunspacePool = $pool
    [void]$shell.AddScript($env:IMDS_TEST_CALL).AddArgument($listener.AcceptTcpClient()).BeginInvoke()
}
"""
# The global variable has the options, as Ansible's own wrapper sets it. A module that exits ends only its own script.
_CALL = """
param($client)
$ErrorActionPreference = 'Stop'
Set-StrictMode -Version 2.0
try {
    Import-Module $env:IMDS_TEST_LEGACY -WarningAction SilentlyContinue
    $call = [System.IO.StreamReader]::new($client.GetStream()).ReadLine() | ConvertFrom-Json -AsHashtable
    $global:complex_args = $call.options
    $result = & $call.module
}
catch { $result = "error: $_" }
$writer = [System.IO.StreamWriter]::new($client.GetStream())
$writer.Write("$result")
$writer.Dispose()
"""


class PowerShell:
    """A process of PowerShell that runs modules side by side, each in a runspace."""

    def __init__(self, port: int) -> None:
        self._port = port

    def run_module(self, name: str, options: Mapping[str, Any]) -> dict[str, Any]:
        """Run the module of this name with these options, and return its decoded result."""
        return self.run_script(REPOSITORY / "plugins" / "modules" / f"{name}.ps1", options)

    def run_script(self, module: Path, options: Mapping[str, Any]) -> dict[str, Any]:
        """Run a script as a module, and return the decoded object that it prints."""
        with socket.create_connection(("127.0.0.1", self._port), _LONGEST) as connection:
            connection.sendall(json.dumps({"module": str(module), "options": options}).encode() + b"\n")
            with connection.makefile(encoding="utf-8") as incoming:
                text = incoming.read()
        assert text.startswith("{"), text
        result: dict[str, Any] = json.loads(text)
        return result


@contextlib.contextmanager
def powershell(environment: Mapping[str, str]) -> Iterator[PowerShell]:
    """Run a process of PowerShell during the block, with these additional variables in its environment."""
    assert PROGRAM is not None, NOT_HERE
    settings = {"LEGACY": str(_LEGACY), "CALL": _CALL, "AT_A_TIME": str(AT_A_TIME)}
    with subprocess.Popen(
        [PROGRAM, "-NoProfile", "-NonInteractive", "-Command", _START],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment, **{f"IMDS_TEST_{name}": value for name, value in settings.items()}},
    ) as process:
        try:
            assert process.stdout
            yield PowerShell(int(process.stdout.readline()))
        finally:
            process.kill()
