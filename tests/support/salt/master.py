# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A real salt-master on loopback."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
from pathlib import Path
from typing import Any

from support.salt.event_bus import EventBus
from support.salt.salt_installation import QUIET, SaltInstallation
from support.salt.salt_process import ADDRESS, PORTS, SaltProcess
from support.wait import wait_until

# seconds; a busy machine may need a minute to start a master and its minions
WAIT_FOR_DAEMONS = 300.0
CLIENT_LOOP = Path(__file__).with_name("salt_client_loop.py")


class Refused(Exception):
    """A command of Salt failed: its exit code and its output."""


class Master(SaltProcess):
    def __init__(self, folder: Path, installation: SaltInstallation, file_roots: list[Path], **config: Any) -> None:
        self.pillar = folder / "pillar"
        ports = {"publish_port": next(PORTS), "ret_port": next(PORTS)}
        settings = {
            "interface": ADDRESS,
            "auto_accept": True,
            "worker_threads": 3,
            # of the command line, whose five seconds a busy machine may need for itself
            "timeout": 60,
            "gather_job_timeout": 15,
            "file_roots": {"base": list(map(str, file_roots))},
            "pillar_roots": {"base": [str(self.pillar)]},
            "event_return": "rawfile_json",
            "rawfile_json.filename": str(folder / "events"),
            **ports,
            **config,
        }
        super().__init__("master", folder, installation, settings)
        self.pillar.mkdir()
        self.bus = EventBus(folder / "events")
        self._client_loop: subprocess.Popen[str] | None = None

    def set_pillar(self, **pillars: dict[str, Any]) -> None:
        """Set the pillar of each minion, by its id; the other minions keep theirs."""
        for name, pillar in pillars.items():
            (self.pillar / (f"{name}.sls")).write_text(json.dumps(pillar))
        names = {file.stem for file in self.pillar.glob("*.sls")} - {"top"}
        (self.pillar / "top.sls").write_text(json.dumps({"base": {name: [name] for name in sorted(names)}}))

    def ask(self, minion: str, function: str, *words: Any, timeout: int = 60, **named: Any) -> Any:
        """Return the return of one minion, or None without an answer."""
        return self.ask_all(minion, function, *words, timeout=timeout, **named).get(minion)

    def ask_all(
        self,
        target: str | list[str],
        function: str,
        *words: Any,
        timeout: int = 60,
        tgt_type: str = "glob",
        **named: Any,
    ) -> dict[str, Any]:
        returned: dict[str, Any] = self._call(
            "cmd", tgt=target, fun=function, arg=words, kwarg=named, timeout=timeout, tgt_type=tgt_type
        )
        return returned

    def start_job(self, minion: str, function: str, *words: Any) -> None:
        """Publish a job, and do not wait for its return."""
        self._call("run_job", tgt=minion, fun=function, arg=words, listen=False)

    def run_runner(self, function: str, *words: Any, **named: Any) -> Any:
        """Return what a runner returned; raise Refused if it failed."""
        return self._call("runner", fun=function, arg=words, kwarg=named)

    def wait_for(self, *minions: str) -> None:
        """Wait until the master, and then each minion, answers."""
        for minion in minions:
            timeouts = itertools.chain((3, 6, 12, 24), itertools.repeat(48))
            wait_until(
                lambda: self._answers(minion, next(timeouts)), f"an answer of {minion}", timeout=WAIT_FOR_DAEMONS
            )

    def _answers(self, minion: str, timeout: int) -> bool:
        try:
            # without an answer Salt may return a text
            return self.ask(minion, "test.ping", timeout=timeout) is True
        except Refused:
            return False

    def run(self, *command: str | Path, check: bool = True, timeout: float = 180) -> Any:
        """Run one of Salt's programs, such as salt-run, and return its parsed JSON output.

        The start of a program takes more than a second; see ``ask`` and ``run_runner``.
        """
        name, *words = map(str, command)
        line = [*self.installation.command(name), "-c", str(self.folder), "--out", "json", *words]
        ran = subprocess.run(
            line, env={**os.environ, **QUIET}, capture_output=True, text=True, timeout=timeout, check=False
        )
        if check and ran.returncode:
            raise Refused(f"{' '.join(words)}: exit code {ran.returncode}\n{ran.stdout}{ran.stderr}")
        return json.loads(ran.stdout) if ran.stdout.strip() else None

    def stop(self) -> None:
        self._stop_client_loop()
        super().stop()

    def kill(self) -> None:
        self._stop_client_loop()
        super().kill()

    def _call(self, name: str, **arguments: Any) -> Any:
        """Return what a call of a client returned; see salt_client_loop."""
        client_loop = self._start_client_loop()
        assert client_loop.stdin and client_loop.stdout
        client_loop.stdin.write(json.dumps([name, arguments]) + "\n")
        client_loop.stdin.flush()
        answer = json.loads(client_loop.stdout.readline())
        if "error" in answer:
            raise Refused(answer["error"])
        return answer["returned"]

    def _start_client_loop(self) -> subprocess.Popen[str]:
        if not self._client_loop:
            command = [str(self.installation.python), str(CLIENT_LOOP), str(self.folder / "master")]
            environment = {**os.environ, **QUIET}
            with self.log.open("ab") as log:
                self._client_loop = subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, env=environment, text=True
                )
        return self._client_loop

    def _stop_client_loop(self) -> None:
        """End the client loop, which ends with its standard input."""
        if self._client_loop:
            self._client_loop.communicate(timeout=60)
            self._client_loop = None
