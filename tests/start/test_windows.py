# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""docs/start/windows.md as printed on Linux, with stand-ins for Windows.

tests/windows/test_start_page.py follows its section about Salt.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator, Mapping

import pytest

from support.new_user.new_user import NewUser, new_user
from support.new_user.page_reader import PageReader

OLDEST_PYTHON = (3, 10)
SALT_BLOCKS = ("yaml", "powershell", "sh", "text")
# loaded by Ansible in place of its own connection
PSRP = '''
DOCUMENTATION = """
name: psrp
short_description: A stand-in
description: Performs the exchange of the module in Python.
options:
  folder:
    description: Path of the folder of the host.
    type: str
    env:
      - name: STAND_IN_FOLDER
"""
from support.windows_hosts.connection_plugins.windows_stand_in import Connection as StandIn


class Connection(StandIn):
    transport = "psrp"
'''


@pytest.fixture
def user() -> Iterator[NewUser]:
    with new_user(OLDEST_PYTHON) as found:
        yield found


def stand_in(user: NewUser) -> Mapping[str, str]:
    """Create a connection plugin psrp that reaches a Windows host without Windows, and return its variables."""
    plugins, host = user.programs.parent / "plugins", user.home / "windows-host"
    plugins.mkdir()
    (plugins / "psrp.py").write_text(PSRP)
    return {
        "ANSIBLE_CONNECTION_PLUGINS": str(plugins),
        "PYTHONPATH": f"{user.checkout}:{user.checkout / 'tests'}",
        "STAND_IN_FOLDER": str(host),
    }


def on_linux(windows_command: str) -> str:
    """Return a command of cmd.exe for the shell, which would replace its asterisk."""
    program, *words = shlex.split(windows_command)
    assert program == "curl.exe"
    return shlex.join(["curl", "--silent", *words])


def test_windows_page_as_printed_reads_and_approves_an_event(user: NewUser) -> None:
    began = time.monotonic()
    reader = PageReader("docs/start/windows.md", str(user.home))
    folder = user.home / "azure-windows"
    log = folder / "simulator.log"
    with user.shell(network=True) as shell:
        reader.go_on(shell, "pip install")
    with user.shell(network=False, variables=stand_in(user)) as shell:
        shell.paste("cd azure-windows\n. venv/bin/activate\nmkdir ../windows-host\n")
        reader.go_on(shell, "imds-simulator --vm")
        reader.go_on(shell, "imds-simulator schedule")
        reader.prints(shell.paste(on_linux(reader.take("powershell"))) + "\n")
        print(f"first result after {time.monotonic() - began:.0f} s")
        reader.go_on(shell, "read -r", answers={"WIN_PASSWORD": "secret\n"})
        reader.go_on(shell, "event_approve")
        assert " approved " in log.read_text()
        for language in SALT_BLOCKS:
            reader.take(language)
        reader.go_on(shell)
        print(f"end after {time.monotonic() - began:.0f} s")
    assert reader.is_at_end() and not folder.exists()
