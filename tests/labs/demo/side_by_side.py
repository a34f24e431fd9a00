# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Runs several handlings at the same time, each in a process with its own namespaces."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from demo.result import Result
from support.hosts.namespaces import UNSHARE_COMMAND
from support.repository import REPOSITORY

PATHS = ("tests", "tests/labs", ".", "roles/imds_simulator/files")
READY_LIMIT = 600.0
RUN_LIMIT = 1200.0


class RunFailed(Exception):
    """A run ended without a result; the text has the end of its output."""


def run_all(handlings: Sequence[str], folder: Path) -> list[Result]:
    """Run the handlings of these names, in a folder each; their loads begin together, when all hosts are ready."""
    runs = {name: _start(name, folder / name) for name in handlings}
    try:
        end = time.monotonic() + READY_LIMIT
        while not all((folder / name / "ready").exists() for name in runs):
            _raise_if_ended(runs, folder)
            if time.monotonic() > end:
                raise RunFailed(f"not all hosts were ready within {READY_LIMIT:g} s")
            time.sleep(0.1)
        for name in runs:
            (folder / name / "go").touch()
        end = time.monotonic() + RUN_LIMIT
        for name, process in runs.items():
            if process.wait(max(1.0, end - time.monotonic())):
                raise RunFailed(_output(name, folder))
        return [Result.read(folder / name / "result") for name in runs]
    finally:
        for process in runs.values():
            process.kill()  # with it the kernel ends all of its namespaces
            process.wait()


def _start(name: str, folder: Path) -> subprocess.Popen[bytes]:
    folder.mkdir(parents=True)
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(str(REPOSITORY / path) for path in PATHS),
    }
    with (folder / "output").open("wb") as output:
        return subprocess.Popen(
            [*UNSHARE_COMMAND, sys.executable, "-m", "demo.one_run", name, str(folder)],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )


def _raise_if_ended(runs: dict[str, subprocess.Popen[bytes]], folder: Path) -> None:
    for name, process in runs.items():
        if process.poll() is not None:
            raise RunFailed(_output(name, folder))


def _output(name: str, folder: Path) -> str:
    return f"{name}: ended without a result\n{(folder / name / 'output').read_text(errors='replace')[-4000:]}"
