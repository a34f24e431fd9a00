# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Minions and a master that load the modules from the checkout, without a sync or a second start."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from support.salt.cluster import TREE, Cluster
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
# replaces the minion's module, and answers from a file
HOSTILE = """
import json, os
__virtualname__ = "azure_events"
def __virtual__():
    return __virtualname__
def _answer(function, **given):
    with open(os.path.join(__opts__["root_dir"], "answers.json")) as file:
        return json.load(file).get(function)
def status(event_id=None):
    return _answer("status")
def prepare(event_id=None, test=False):
    return dict(_answer("prepare"), event_id=event_id)
def flood(number):
    tag = "salt/beacon/%s/azure_events/scheduled" % __opts__["id"]
    for one in range(number):
        __salt__["event.send"](tag, {"event_id": "forged-%d" % one})
def recover(event_id=None, test=False):
    return dict(_answer("recover"), event_id=event_id)
def approve_prepared(event_id, resources, forced=False):
    return dict(_answer("approve_prepared"), event_id=event_id)
"""


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


def hostile(cluster: Cluster, name: str) -> Minion:
    """A minion with a module of its own, which answers what `say` has set."""
    modules = cluster.folder / ("modules-" + name)
    modules.mkdir()
    (modules / "azure_events.py").write_text(HOSTILE)
    minion = cluster.minion(name, module_dirs=[str(modules)])
    say(minion)
    return minion


def status_answer(name: str | None, *events: dict[str, Any], **more: Any) -> dict[str, Any]:
    whole = {"version": 1, "resource_name": name, "available": True, "reason": "", "complete": True, "incarnation": 1}
    return {**whole, "events": list(events), "records": [], "working": None, **more}


def say(
    minion: Minion, status: Any = None, prepare: str = "prepared", recover: str = "failed", approve: str = "approved"
) -> None:
    """Set the answers of the hostile minion."""
    answers = {"status": status if status is not None else status_answer(minion.name)}
    answers.update(
        {
            key: {"version": 1, "outcome": word, "reason": ""}
            for key, word in (("prepare", prepare), ("recover", recover))
        }
    )
    answers["approve_prepared"] = {"version": 1, "outcome": approve, "reason": ""}
    file = Path(minion.folder) / "answers.json"
    file.with_suffix(".draft").write_text(json.dumps(answers))
    file.with_suffix(".draft").replace(file)
