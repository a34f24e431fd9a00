# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Minions and a master that load the modules from the checkout, without a sync or a second start."""

from __future__ import annotations

from typing import Any

from support.salt.cluster import TREE
from support.salt.minion import Minion
from support.wait import wait_until

MASTER_DIRS: dict[str, Any] = {
    "engines_dirs": [str(TREE / "_engines")],
    "runner_dirs": [str(TREE / "_runners")],
    "utils_dirs": [str(TREE / "_utils")],
}
MINION_DIRS: dict[str, Any] = {
    "beacons_dirs": [str(TREE / "_beacons")],
    "module_dirs": [str(TREE / "_modules")],
    "states_dirs": [str(TREE / "_states")],
    "utils_dirs": [str(TREE / "_utils")],
}


class StepLog:
    """The log of a minion's steps, which they write into a file.

    A preparation waits while there is a file "wait"; a step fails while there is a file "fail-STEP".
    """

    def __init__(self, minion: Minion) -> None:
        self._folder = minion.folder

    def pillar(self) -> dict[str, Any]:
        wait = "while test -e wait; do sleep 0.1; done"
        return {
            "azure_events": {
                "prepare": [self._step("prepare", "begin", wait)],
                "recover": [self._step("recover", "try", "true")],
            }
        }

    def _step(self, name: str, first: str, wait: str) -> str:
        return f"cd {self._folder} && echo {first} >> done && {wait} && ! test -e fail-{name} && echo {name} >> done"

    def reset(self) -> None:
        self.mend()
        (self._folder / "done").unlink(missing_ok=True)

    def mend(self) -> None:
        """Have all steps succeed without waiting."""
        for name in ("wait", "fail-prepare", "fail-recover"):
            (self._folder / name).unlink(missing_ok=True)

    def pause(self) -> None:
        (self._folder / "wait").touch()

    def go_on(self) -> None:
        (self._folder / "wait").unlink()

    def fail(self, step: str) -> None:
        """Have this step fail from now on."""
        (self._folder / ("fail-" + step)).touch()

    def count(self, step: str) -> int:
        done = self._folder / "done"
        return done.read_text().split().count(step) if done.exists() else 0

    def wait(self, step: str, times: int = 1) -> None:
        wait_until(lambda: self.count(step) >= times, f"{step} in {self._folder}")

    @property
    def counts(self) -> tuple[int, int]:
        """Return the numbers of successful preparations and recoveries."""
        return self.count("prepare"), self.count("recover")
