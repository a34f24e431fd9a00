# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""docs/start/windows.md as printed on Linux, with stand-ins for Windows.

tests/system/windows/test_start_page.py follows the section about Salt.
"""

from __future__ import annotations

import shlex

import pytest

from support.recipes.printed import fences
from support.repository import REPOSITORY
from support.start.new_user import NewUser, default_ports, new_user
from support.start.page import follow_blocks

pytestmark = pytest.mark.all

PAGE = REPOSITORY / "docs" / "start" / "windows.md"
# of the Linux machine, which is the Windows machine, too
PRINTED, ADDRESS = "192.0.2.10", "127.0.0.1"
SALT = "## Or read it with Salt\n"
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


def with_stand_in(user: NewUser) -> NewUser:
    """Return the user with a connection psrp that reaches a host without Windows."""
    plugins = user.pasted.with_name("plugins")
    plugins.mkdir()
    (plugins / "psrp.py").write_text(PSRP, encoding="utf-8")
    sources = user.origin
    variables = {
        "ANSIBLE_CONNECTION_PLUGINS": str(plugins),
        "PYTHONPATH": f"{sources}:{sources / 'tests'}",
        "STAND_IN_FOLDER": str(user.home),
    }
    return user._replace(environment={**user.environment, **variables})


def on_linux(command: str) -> str:
    """Return a command of PowerShell for bash, which would replace its asterisk by file names."""
    program, *words = shlex.split(command)
    assert program == "curl.exe"
    return shlex.join(["curl", "--silent", *words])


def blocks_on_linux() -> list[tuple[str, str]]:
    """Return the blocks that this test follows, for bash."""
    before, _heading, section = PAGE.read_text(encoding="utf-8").partition(SALT)
    printed = fences((before + section[section.index("\n## ") :]).replace(PRINTED, ADDRESS))
    return [("sh", on_linux(text)) if language == "powershell" else (language, text) for language, text in printed]


def test_page_as_printed_reads_and_approves_an_event() -> None:
    with new_user("sys.version_info >= (3, 10)") as plain, default_ports():
        user = with_stand_in(plain)
        with user.terminal() as terminal:
            # the terminal has no input
            follow_blocks(blocks_on_linux(), user, terminal, lambda block: "\nread " in block)
        log = (user.home / "azure-windows" / "simulator.log").read_text(encoding="utf-8")
        assert log.count(" approved ") == 1
