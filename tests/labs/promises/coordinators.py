# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The coordinators: what prepares the hosts, approves the event when all are prepared, and recovers them."""

from __future__ import annotations

import abc
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from chaos.controller import Controller
from chaos.plan import SETTLE
from chaos.testbed import Testbed
from promises.world import World
from support.wait import wait_until

# seconds; only a run that hangs takes all of them
RUN_LIMIT = 300.0
# of the playbook: longer than any case
LIMITS = dict.fromkeys(("maintenance_patience", "maintenance_task_timeout", "maintenance_removed_after"), 280)


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
    def wait_until_reported(self, name: str) -> None:
        """Wait until the coordinator knows that a host has prepared."""

    @abc.abstractmethod
    def wait_for_decision(self) -> None:
        """Wait until it has decided about the present states of the hosts."""

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
    # it has decided, or waits for a host that is lost
    decided = re.compile(
        r"PLAY \[Wait for the end of the events and recover each host\]|TASK .*Pause before the hosts are read again\]"
    )
    variables: Mapping[str, Any] = {}

    def __init__(self, world: World, collections: Path) -> None:
        super().__init__(world)
        shutil.copy2(world.key, world.folder / "key")
        # sockets need a short path
        self.sockets = Path("/run/promises-ssh")
        self.sockets.mkdir(mode=0o700, exist_ok=True)
        self._testbed = Testbed(world.folder, self.sockets, collections, world.vms, world.simulator)
        self.runs: list[Controller] = []

    def start(self) -> None:
        self.runs.append(self._testbed.run(f"run-{len(self.runs) + 1}", **LIMITS, **self.variables))

    def wait_until_reported(self, name: str) -> None:
        # Ansible prints the result of a host when it has it, also while the task runs on others
        self._wait(
            lambda: f"changed: [{name}]" in self._output().rpartition(f"Step {SETTLE}]")[2], f"{name} has prepared"
        )

    def wait_for_decision(self) -> None:
        self._wait_for_lines(1)

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

    def _lines(self) -> int:
        """Return how often the output says that it has decided."""
        return len(self.decided.findall(self._output()))

    def _wait_for_lines(self, number: int) -> None:
        self._wait(lambda: self._lines() >= number, f"the output has {number} times {self.decided.pattern}")

    def _wait(self, condition: Callable[[], object], what: str) -> None:
        wait_until(condition, what, lambda: self._output()[-3000:], pause=0.1)

    def _output(self) -> str:
        return self.runs[-1].output
