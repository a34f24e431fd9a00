# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The coordinators: what prepares the hosts, approves the event when all are prepared, and recovers them."""

from __future__ import annotations

import abc
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from chaos.controller import Controller
from chaos.plan import Plan
from chaos.testbed import Testbed
from promises.world import NAMES, World
from support.wait import wait_until

# seconds; only a run that hangs takes all of them
RUN_LIMIT = 300.0
# of the playbook: longer than any case
PATIENCE, TASK_TIMEOUT = 280, 280


class Coordinator(abc.ABC):
    """A coordinator in one case.

    Attributes:
        name: for the table.
        hosts_prepare_alone: whether hosts prepare that it does not reach.
    """

    name = ""
    hosts_prepare_alone = False

    def __init__(self, world: World) -> None:
        self.world = world

    @abc.abstractmethod
    def start(self) -> None:
        """Begin to coordinate, if it does not by itself."""

    @abc.abstractmethod
    def wait_for_decision(self) -> None:
        """Wait until it has decided about the present states of the hosts."""

    @abc.abstractmethod
    def approves_later(self, event_id: str) -> bool:
        """Wait for an approval after a host has come back; return False if its decision is final."""

    @abc.abstractmethod
    def finish(self) -> None:
        """Wait until it has recovered all hosts, or has done what it can."""

    def make_unreachable(self, name: str) -> None:
        self.world.vms[name].link.cut_ssh()

    def make_reachable(self, name: str) -> None:
        self.world.vms[name].link.mend()

    @abc.abstractmethod
    def close(self) -> None:
        """End the processes that it has started for the case."""


class Playbook(Coordinator):
    """The playbook azure_imds.scheduled_events.maintenance over ssh."""

    name = "playbook"
    decided = "PLAY [Wait for the end of the events and recover each host]"
    variables: Mapping[str, Any] = {}

    def __init__(self, world: World, collections: Path) -> None:
        super().__init__(world)
        shutil.copy2(world.key, world.folder / "key")
        # sockets need a short path
        self.sockets = Path("/run/promises-ssh")
        self.sockets.mkdir(mode=0o700, exist_ok=True)
        plan = Plan(0, "", NAMES, (), (), (), (), (), 0.0, False, True, False)
        self._testbed = Testbed(plan, world.folder, self.sockets, collections, world.vms, world.simulator)
        self.runs: list[Controller] = []

    def start(self) -> None:
        limits = {"maintenance_patience": PATIENCE, "maintenance_task_timeout": TASK_TIMEOUT}
        self.runs.append(self._testbed.run(f"run-{len(self.runs) + 1}", **limits, **self.variables))

    def wait_for_decision(self) -> None:
        self._wait_for_line(self.decided, 1)

    def approves_later(self, event_id: str) -> bool:
        return False

    def finish(self) -> None:
        """Wait for the run, and run once more while a host is drained."""
        self._end()
        if any(vm.is_drained for vm in self.world.vms.values()):
            self.start()
            self._end()

    def close(self) -> None:
        for run in self.runs:
            run.kill("kill-9-all")

    def _end(self) -> None:
        assert self.runs[-1].wait(RUN_LIMIT), self.runs[-1].output[-3000:]

    def _wait_for_line(self, text: str, times: int) -> None:
        wait_until(
            lambda: self.runs[-1].output.count(text) >= times,
            f"the output has {text!r} {times} times",
            lambda: self.runs[-1].output[-3000:],
            pause=0.1,
        )
