# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The section of docs/start/windows.md about Salt, with a minion of Windows and a master on Linux.

tests/functional/start/test_windows.py follows the rest of the page.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import PureWindowsPath

import pytest

from support import simulator_process
from support.daemon.documents import shape
from support.recipes.printed import fences, is_shown
from support.repository import REPOSITORY
from support.salt.cluster import Cluster
from support.salt.salt_installation import QUIET
from support.simulator_process import Simulator
from support.windows.windows_minion import HOME, TIMEOUT, WindowsMinion
from support.windows.wine import Wine

pytestmark = pytest.mark.all

PAGE = (REPOSITORY / "docs" / "start" / "windows.md").read_text(encoding="utf-8")
SECTION = PAGE.split("## Or read it with Salt\n")[1].partition("\n## ")[0]
ENDPOINT = "http://192.0.2.10:8169"
EVENT = "F29FDFA2-BE90-4942-94D0-E137DE9DA355"


@pytest.fixture
def linux1() -> Iterator[Simulator]:
    with simulator_process.start(args=["--vms", "win1", "--clock", "manual"]) as running:
        yield running


@pytest.fixture
def win1(wine: Wine, site: Cluster) -> Iterator[WindowsMinion]:
    minion = WindowsMinion("win1", wine, site.master)
    minion.configure()
    site.master.start()
    try:
        minion.start()
        minion.ask("saltutil.sync_all")
        yield minion
    finally:
        minion.kill()


def test_minion_with_the_printed_file_lists_the_event(win1: WindowsMinion, linux1: Simulator) -> None:
    file, restart, command, answer = (text for _language, text in fences(SECTION))
    path = PureWindowsPath(file.partition("\n")[0].removeprefix("# "))
    assert PureWindowsPath(HOME) in path.parents and ENDPOINT in file
    win1.wine.inside(path).parent.mkdir(parents=True, exist_ok=True)
    win1.wine.inside(path).write_text(file.replace(ENDPOINT, linux1.endpoints["win1"]), encoding="utf-8")
    assert restart == "Restart-Service salt-minion\n"
    win1.kill()
    win1.start()
    linux1.post("/events", {"type": "Reboot", "resources": ["win1"], "notice": "10m", "id": EVENT})
    place, line = command.splitlines()
    assert place == "# on the master"
    program, *words = shlex.split(line)
    master = win1.master
    ran = subprocess.run(
        [*master.installation.command(program), "-c", str(master.folder), f"-t{TIMEOUT}", *words],
        env={**os.environ, **QUIET},
        capture_output=True,
        text=True,
        timeout=2 * TIMEOUT,
        check=False,
    )
    assert is_shown(shape(ran.stdout), shape(answer)), ran.stdout + ran.stderr
