# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A salt-minion in the Windows Python, with the folders of an installation on Windows."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

from support.salt.guarded_process import GuardedProcess
from support.salt.master import Master, Refused
from support.salt.salt_installation import QUIET
from support.wait import wait_until
from support.windows.wine import Wine

HOME = r"C:\ProgramData\Salt Project\Salt"
# answers in place of Wine's WMI, which has no classes
WMI = Path(__file__).with_name("site")
# seconds for one job; a step that is a function or an SLS file starts a Python
TIMEOUT = 180
# Wine 8 does not answer the question for the name of a process, which Salt writes into a file at its start
PROGRAM = """
import psutil
psutil.Process.name = lambda process: "python.exe"
from salt.scripts import salt_minion
salt_minion()
"""


class WindowsMinion:
    """A minion of a master on this machine. It uses the default folders, and is the only one of its drive C:."""

    def __init__(self, name: str, wine: Wine, master: Master) -> None:
        self.name = name
        self.wine = wine
        self.master = master
        self.home = wine.inside(HOME)
        self._wmi = wine.drive / "site"
        self._process: GuardedProcess | None = None

    def configure(self, **config: Any) -> None:
        """Remove everything of an earlier minion, and write the configuration."""
        shutil.rmtree(self.home, ignore_errors=True)
        shutil.copytree(WMI, self._wmi, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
        settings = {
            "id": self.name,
            "master": self.master.config["interface"],
            "master_port": self.master.config["ret_port"],
            "publish_port": self.master.config["publish_port"],
            "acceptance_wait_time": 1,
            "random_reauth_delay": 1,
            "enable_fqdns_grains": False,
            "log_level_logfile": "info",
            "loop_interval": 1,
            # a process for each job would take 5 s to start under Wine
            "multiprocessing": False,
            **config,
        }
        for folder in ("conf", "var/log/salt"):
            (self.home / folder).mkdir(parents=True)
        (self.home / "conf" / "minion").write_text(json.dumps(settings), encoding="utf-8")

    @property
    def cache(self) -> Path:
        """The minion's cachedir, by default."""
        return self.home / "var" / "cache" / "salt" / "minion"

    def start(self) -> None:
        """Start the minion, and wait for its answer."""
        env = {**os.environ, **QUIET, **self.wine.variables, "PYTHONPATH": self.wine.outside(self._wmi)}
        # no program under Wine may start in a folder that it cannot name
        command = ["env", f"--chdir={self.wine.drive}", *self.wine.python("-c", PROGRAM)]
        self.output.unlink(missing_ok=True)
        process = self._process = GuardedProcess(command, self.output, env)
        wait_until(lambda: not process.running or self._answers(), "an answer of the minion", self.log_text)
        assert process.running, self.log_text()

    def _answers(self) -> bool:
        try:
            # without an answer Salt may return a text
            return self.ask("test.ping", timeout=20) is True
        except Refused:
            return False

    def kill(self) -> None:
        """Kill all processes of the minion, as a crash does."""
        if self._process:
            self._process.kill()
            self._process = None

    def reboot(self) -> None:
        """End everything that runs on the drive C:, begin another boot, and start the minion."""
        self.kill()
        self.wine.end()
        self.wine.boot()
        self.start()

    @property
    def output(self) -> Path:
        """The file with the minion's standard output and error."""
        return self.wine.folder / "minion-output"

    def log_text(self) -> str:
        """Return the minion's output and log."""
        files = (self.output, self.home / "var" / "log" / "salt" / "minion")
        return "".join(file.read_text(encoding="utf-8", errors="replace") for file in files if file.exists())

    def ask(self, function: str, *words: Any, **named: Any) -> Any:
        """Return the return of a function, or None without an answer in time; `timeout` is in seconds."""
        return self.master.ask(self.name, function, *words, **{"timeout": TIMEOUT, **named})

    def wait_for_event(self, change: str, **fields: Any) -> dict[str, Any]:
        """Wait for the first such event of the beacon on the master's bus, and return its data."""
        return self.master.bus.wait(f"salt/beacon/{self.name}/azure_events/{change}", **fields).data
