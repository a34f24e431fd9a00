# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The section of docs/start/windows.md about Salt, with a minion of Windows and a master on Linux.

tests/start/test_windows.py follows the rest of the page.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import PureWindowsPath

import pytest

from support import simulator_process
from support.new_user.page_reader import Block, blocks_of, is_as_printed
from support.repository import REPOSITORY
from support.salt.cluster import Cluster
from support.salt.salt_installation import QUIET
from support.simulator_process import Simulator
from support.windows.windows_minion import HOME, TIMEOUT, WindowsMinion
from support.windows.wine import Wine

PAGE = "docs/start/windows.md"
ENDPOINT = "http://linux1:8169"
EVENT = "F29FDFA2-BE90-4942-94D0-E137DE9DA355"


def salt_blocks() -> list[Block]:
    """Return the blocks from the configuration of the minion to the answer of the command."""
    blocks = blocks_of(PAGE)
    first = next(number for number, block in enumerate(blocks) if block.text.startswith("# C:\\"))
    return blocks[first : first + 4]


@pytest.fixture
def linux1() -> Iterator[Simulator]:
    with simulator_process.start(args=["--vm", "win1", "--clock", "manual"]) as running:
        yield running


@pytest.fixture
def win1(wine: Wine, site: Cluster) -> Iterator[WindowsMinion]:
    modules = wine.drive / "site"
    modules.mkdir(exist_ok=True)
    for file in (REPOSITORY / "tests" / "support" / "windows" / "site").glob("*.py"):
        (modules / file.name).write_bytes(file.read_bytes())
    minion = WindowsMinion("win1", wine, site.master, modules)
    minion.configure()
    site.master.start()
    try:
        minion.start()
        minion.ask("saltutil.sync_all")
        yield minion
    finally:
        minion.kill()


def test_minion_with_the_printed_file_lists_the_event(win1: WindowsMinion, linux1: Simulator) -> None:
    file, restart, command, answer = salt_blocks()
    path = PureWindowsPath(file.text.partition("\n")[0].removeprefix("# "))
    assert PureWindowsPath(HOME) in path.parents and ENDPOINT in file.text
    win1.wine.inside(path).parent.mkdir(parents=True, exist_ok=True)
    win1.wine.inside(path).write_text(file.text.replace(ENDPOINT, linux1.endpoints["win1"]), encoding="utf-8")
    assert restart.text == "Restart-Service salt-minion\n"
    win1.kill()
    win1.start()
    linux1.post("/events", {"type": "Reboot", "resources": ["win1"], "notice": "10m", "id": EVENT})
    place, line = command.text.splitlines()
    assert place == "# on the master"
    program, *words = shlex.split(line)
    master = win1.master
    ran = subprocess.run(
        [*master.nested(), *master.installation.command(program), "-c", str(master.folder), f"-t{TIMEOUT}", *words],
        env={**os.environ, **QUIET},
        capture_output=True,
        text=True,
        timeout=2 * TIMEOUT,
        check=False,
    )
    assert is_as_printed(answer.text, ran.stdout, str(master.folder)), ran.stdout + ran.stderr
