# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""One seed from beginning to end: the disturbed run, all faults healed, and undisturbed runs until all is over."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from chaos.controller import Controller
from chaos.disturbances import Disturbances
from chaos.evidence import ELSEWHERE, Deed, Evidence, Run, approvals_from, events_from
from chaos.not_before import NotBefore
from chaos.plan import Disturbance, Plan
from chaos.site import Site, site_of

# seconds after which a run hangs: five times the patience
LONGEST_RUN = 300.0
MOST_RUNS = 3


class Lived(NamedTuple):
    """What is known of a seed after it: evidence, which disturbances were done, and what went wrong in the harness itself."""

    evidence: Evidence
    done: list[str]
    errors: list[str]


def live(plan: Plan, folder: Path, sockets: Path, collections: Path) -> Lived:
    """Carry out a plan in this process's own namespaces."""
    with site_of(plan, folder, sockets, collections) as site:
        return _Life(site).to_its_end()


class _Life:
    def __init__(self, site: Site) -> None:
        self.site, self.plan = site, site.plan
        self.runs: list[Run] = []
        self.deeds: list[Deed] = []
        self.done: list[str] = []
        self.errors: list[str] = []
        self.stays_down: str | None = None

    def to_its_end(self) -> Lived:
        for event in self.plan.events:
            self.site.announce(event)
        not_before = NotBefore(self.site)
        last = self._disturb("disturbed-run", self.plan.disturbances)
        self.site.heal(but=self.stays_down)
        if self.plan.events_end:
            self.site.end_events()
        time.sleep(self.plan.pause)
        if self.plan.again:
            last = self._disturb("disturbed-run-2", self.plan.again)
        is_elsewhere = self.plan.elsewhere
        if is_elsewhere and last.killed:
            self._end(self.site.run(ELSEWHERE, elsewhere=True), is_disturbed=True)
        for number in range(1, MOST_RUNS + 1):
            self._end(
                self.site.run(f"next-run-{number}", elsewhere=is_elsewhere, take_over=is_elsewhere),
                is_disturbed=False,
            )
            if not self.runs[-1].down and not self.site.living():
                break
            self.site.heal()
            self.site.end_events()
        not_before.stop()
        lines = self.site.azure_log()
        evidence = Evidence(
            self.plan, self.runs, self.site.marks(), events_from(lines), approvals_from(lines), self.deeds
        )
        return Lived(evidence, self.done, self.errors)

    def _disturb(self, name: str, wanted: Sequence[Disturbance]) -> Controller:
        run = self.site.run(name)
        disturbances = Disturbances(self.site, run, wanted)
        self._end(run, is_disturbed=True)
        disturbances.stop()
        if disturbances.second_run is not None:
            self._end(disturbances.second_run, is_disturbed=True)
        self.stays_down = disturbances.stays_down
        self.deeds += disturbances.deeds
        self.done += disturbances.done
        self.errors += disturbances.errors
        return run

    def _end(self, run: Controller, is_disturbed: bool) -> None:
        hung = not run.wait(max(1.0, run.began + LONGEST_RUN - time.time()))
        if hung:
            run.kill("kill-9-all")
            run.wait(10)
        assert run.ended is not None and run.status is not None
        self.runs.append(
            Run(
                name=run.name,
                is_disturbed=is_disturbed,
                began=run.began,
                ended=run.ended,
                status=run.status,
                killed=run.killed,
                hung=hung,
                down=frozenset(name for name, vm in self.site.vms.items() if not vm.host.is_up),
                drained=frozenset(name for name, vm in self.site.vms.items() if vm.is_drained),
                output=run.output,
            )
        )
