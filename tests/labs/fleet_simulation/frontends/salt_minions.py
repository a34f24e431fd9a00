# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Salt: the real reducer of the engine, and the real functions of minions, whose steps are simulated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from azure_events_engine.messages import PublishJob
from azure_events_steps import imds_observation
from azure_events_steps import minion as minion_module
from azure_events_steps.configuration import Step
from azure_events_steps.execution.results import DONE, FAILED, StepResult
from azure_scheduled_events.session import ConnectionOptions, ImdsSession
from fleet_simulation.frontends.evidence import Grounds, Views, Word
from fleet_simulation.frontends.scenario import HORIZON
from fleet_simulation.frontends.world import World
from support.salt.steps_minion import StepsMinion
from support.salt_simulation.driver import Driver

# seconds between two ticks of the engine
TICK = 0.5
APPROVE = "approve_prepared"
# chances: of a hint per tick, of a message that is lost, of a step that fails, of an operator's --force per tick
HINT, LOSS, FAILS, FORCE = 0.2, 0.03, 0.1, 0.002
# polls of each minion in a run, at least
POLLS = 4


class _Job(NamedTuple):
    """A job of the engine, and the documents of each VM that it knew when it published the job."""

    published: PublishJob
    known: dict[str, tuple[Views, ...]]


class SaltMinions:
    """A master, and a minion on each VM."""

    def __init__(self, world: World, folder: Path) -> None:
        self._world = world
        self._vm_of = {f"http://{vm}": vm for vm in world.vms}
        self._minions = {f"id-{vm}": _minion(folder / vm, endpoint) for endpoint, vm in self._vm_of.items()}
        self._driver = Driver(*self._minions)
        self._began = self._driver.now
        self._known: dict[str, tuple[Views, ...]] = {}
        self._jobs: list[_Job] = []
        self._published = 0
        self._words: dict[str, Word] = {}
        self._job = _Job(PublishJob(0, "", (), {}), {})
        world.grounds = self._grounds

    def run(self) -> None:
        """Let the engine tick, and the minions do its jobs."""
        with (
            mock.patch.object(minion_module, "run_step", self._run_step),
            mock.patch.object(imds_observation, "ImdsSession", self._session),
        ):
            while self._world.now < HORIZON:
                self._world.pass_time(TICK)
                self._decide()
                for minion in self._minions:
                    if self._world.chance.random() < HINT:
                        self._driver.hint_only(minion)
                if self._world.chance.random() < FORCE:
                    self._force(self._world.chance.choice(self._world.event_ids))
                self._do_jobs()
        polls = [self._driver.count("status", minion) for minion in self._minions]
        assert min(polls) >= POLLS, f"the clock of the engine stands still: polls {polls}"

    def _decide(self) -> None:
        """Let the engine tick until now."""
        self._driver.wait(self._began + self._world.now - self._driver.now, TICK)
        self._take_jobs()

    def _take_jobs(self) -> None:
        """Take what the engine has published."""
        self._jobs += [_Job(published, dict(self._known)) for published in self._driver.asked[self._published :]]
        self._published = len(self._driver.asked)

    def _do_jobs(self) -> None:
        jobs, self._jobs = self._jobs, []
        for self._job in jobs:
            for minion in self._job.published.minions:
                self._do(self._job.published, minion)

    def _do(self, job: PublishJob, minion: str) -> None:
        is_lost, is_return_lost = (self._world.chance.random() < LOSS for _message in range(2))
        if is_lost or (is_return_lost and job.function == "status"):
            # a document that the engine does not get is no evidence
            return
        self._world.reads.forget(APPROVE)
        answer = _answer(self._minions[minion], job)
        self._decide()
        if not is_return_lost:
            if job.function == "status":
                self._known.update(self._world.reads.of(minion.removeprefix("id-")))
            self._driver.give_return(job.job, minion, answer)
            self._take_jobs()

    def _force(self, event_id: str) -> None:
        """Have an operator approve an event regardless, as it is now."""
        if "error" in self._driver.request("approve", event_id, force=True):
            return
        key = event_id.casefold()
        kinds, vms = self._world.reads.known(key, *self._world.vms)
        self._words[key] = Word(own=True, others=True, unknown=True, kinds=frozenset(kinds), vms=vms)
        self._take_jobs()

    def _grounds(self, vm: str, key: str) -> Grounds:
        words = tuple(word for each, word in self._words.items() if each == key)
        # the engine knows the answers to polls; the minion that approves reads its events again
        reports = {**self._job.known, **self._world.reads.of(APPROVE)}
        released = self._job.published.kwargs["resources"]
        return Grounds(reports, self._world.preparations.has, words, released, always=(APPROVE,))

    def _session(self, options: ConnectionOptions, interval: float, clock: object, sleep: object) -> Any:
        vm, function = self._vm_of[options.endpoint], self._job.published.function
        return self._world.session(vm, ImdsSession, options, interval, vm if function == "status" else function)

    def _run_step(
        self, step: Step, variables: Mapping[str, str], call: object, not_inherited: Sequence[int] = ()
    ) -> StepResult:
        """Run a step of the VM that the variables name, in virtual time."""
        world, vm = self._world, variables["EVENT_RESOURCE"]
        world.pass_time(world.chance.choice((0.1, 1.0, 5.0)))
        if step.name == "recover":
            world.preparations.undone(vm)
        if world.chance.random() < FAILS:
            return StepResult(step.name, step.kind, FAILED, 0.1, "no luck")
        if step.name == "prepare":
            world.preparations.succeeded(vm, variables["EVENT_TYPE"])
        return StepResult(step.name, step.kind, DONE, 0.1, "")


def _minion(folder: Path, endpoint: str) -> StepsMinion:
    minion = StepsMinion(folder, endpoint)
    minion.configure(**{word: [{"function": "test.ping", "name": word}] for word in ("prepare", "recover")})
    return minion


def _answer(minion: StepsMinion, job: PublishJob) -> Any:
    if job.function == "status":
        return minion.call("status")
    if job.function == APPROVE:
        return minion.call(APPROVE, job.kwargs["event_id"], job.kwargs["resources"])
    return minion.call(job.function, job.kwargs["event_id"])
